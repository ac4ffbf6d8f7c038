"""Bedrock inference profiles, and the exact ARNs of the models that a function may invoke."""

import re
from dataclasses import dataclass
from typing import Self

_REGIONS = {
    "us": ("us-east-1", "us-east-2", "us-west-2"),
    "eu": ("eu-central-1", "eu-north-1", "eu-west-1", "eu-west-3"),
    "apac": ("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2"),
    "global": (),
}
"""Regions that AWS's profiles for the Nova models route to; a global profile names no region in its ARNs."""
_EXAMPLE = "us:us-east-1,us-west-2"
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")


class ProfileUnknown(ValueError):
    """Unknown inference profile; the message starts after the name of the key."""


@dataclass(frozen=True, slots=True)
class InferenceProfile:
    """A geography, and the regions a call may be routed to."""

    geography: str
    regions: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `us`, or `us:us-east-1,us-west-2`.

        Raises:
            ProfileUnknown: the geography or a region is unknown.
        """
        geography, _, named = text.partition(":")
        if not named:
            if geography not in _REGIONS:
                known = ", ".join(_REGIONS)
                raise ProfileUnknown(f"must be one of {known}, or name regions as in {_EXAMPLE}, not {text!r}")
            return cls(geography, _REGIONS[geography])
        regions = tuple(region.strip() for region in named.split(","))
        wrong = [region for region in regions if not _REGION.fullmatch(region)]
        if wrong or not re.fullmatch(r"[a-z-]+", geography):
            raise ProfileUnknown(f"must name regions as in {_EXAMPLE}, not {text!r}")
        return cls(geography, regions)


def invoked_as(model: str, profile: InferenceProfile | None) -> str:
    """The model id that a function passes to Bedrock."""
    return model if profile is None or model == "none" else f"{profile.geography}.{model}"


def arns(
    model: str, profile: InferenceProfile | None, *, partition: str, region: str, account: str
) -> tuple[list[str], list[str]]:
    """ARNs to invoke directly, and ARNs to invoke only through the profile that is among the former."""
    if model == "none":
        return [], []
    if profile is None:
        return [_model(partition, region, model)], []
    through = f"arn:{partition}:bedrock:{region}:{account}:inference-profile/{profile.geography}.{model}"
    regions = [region, ""] if profile.geography == "global" and not profile.regions else list(profile.regions)
    return [through], [_model(partition, each, model) for each in regions]


def _model(partition: str, region: str, model: str) -> str:
    return f"arn:{partition}:bedrock:{region}::foundation-model/{model}"
