"""Where the Nova models can be invoked, Bedrock's inference profiles, and the exact ARNs of both.

The tables are AWS's but for Nova 2 (docs/decisions/0027-models-by-region.md); `make preflight` compares them with an
account.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Geography:
    """Regions that a profile of Nova is called from, and those that a call may be routed to."""

    sources: tuple[str, ...]
    destinations: tuple[str, ...]


_US = ("us-east-1", "us-east-2", "us-west-2")
_EU = ("eu-central-1", "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-3")
_APAC = ("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-southeast-1", "ap-southeast-2")
GEOGRAPHIES = {
    "us": Geography(_US, _US),
    "eu": Geography(_EU, _EU),
    "apac": Geography(_APAC, (*_APAC, "ap-northeast-3")),
}
_JP = ("ap-northeast-1", "ap-northeast-3")


@dataclass(frozen=True, slots=True)
class Family:
    """Models that are invoked in the same regions: with their own ids in `direct`, elsewhere through a profile."""

    mapping: str  # Name of the template's mapping
    models: tuple[str, ...]
    geographies: Mapping[str, Geography]
    direct: tuple[str, ...] = ()

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions where the models can be invoked, directly or through a profile of the tables."""
        return tuple(sorted({*self.direct, *(source for each in self.geographies.values() for source in each.sources)}))

    def profile_in(self, region: str) -> "InferenceProfile | None":
        """The profile that the models need in one of the regions; none where they are invoked directly.

        Sydney has both and takes the profile, as its geography does; N. Virginia takes the model.
        """
        if region in self.direct and region != "ap-southeast-2":
            return None
        geographies = self.geographies.items()
        return next(InferenceProfile(name, each.destinations) for name, each in geographies if region in each.sources)


FAMILIES = (
    Family(
        "ModelRegions",
        ("amazon.nova-micro-v1:0", "amazon.nova-lite-v1:0", "amazon.nova-pro-v1:0"),
        GEOGRAPHIES,
        direct=("us-east-1", "eu-west-2", "ap-southeast-2"),
    ),
    Family(
        "Nova2Regions",
        ("amazon.nova-2-lite-v1:0",),
        {"us": GEOGRAPHIES["us"], "eu": GEOGRAPHIES["eu"], "jp": Geography(_JP, _JP)},
    ),
)


_BEGINNINGS = {"us": "us-", "eu": "eu-", "apac": "ap-", "jp": "ap-northeast-"}
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
        """From `us`, or `us:us-east-1,us-west-2`. Raises ProfileUnknown: the geography or a region is unknown."""
        geography, _, named = text.partition(":")
        if not named:
            if geography == "global":
                return cls(geography, ())
            known = {name: each for family in FAMILIES for name, each in family.geographies.items()}
            if geography not in known:
                names = ", ".join((*known, "global"))
                raise ProfileUnknown(f"must be one of {names}, none, or name regions as in {_EXAMPLE}, not {text!r}")
            return cls(geography, known[geography].destinations)
        regions = tuple(region.strip() for region in named.split(","))
        wrong = [region for region in regions if not _REGION.fullmatch(region)]
        if wrong or not re.fullmatch(r"[a-z-]+", geography):
            raise ProfileUnknown(f"must name regions as in {_EXAMPLE}, not {text!r}")
        return cls(geography, regions)


@dataclass(frozen=True, slots=True)
class Models:
    """Ids of the models of a deployment, or `none`, and how the language models are invoked."""

    reranker: str
    writer: str
    encoder: str
    invoked: str = ""
    """Empty: as the region needs it; `none`: directly; else the profile, as `InferenceProfile.parse` reads it."""

    @property
    def profile(self) -> InferenceProfile | None:
        """The inference profile that was chosen; none: as the region needs it, or directly."""
        return None if self.invoked in ("", "none") else InferenceProfile.parse(self.invoked)

    @property
    def language_models(self) -> tuple[str, ...]:
        """Reranker and writer, each once."""
        return tuple(dict.fromkeys(model for model in (self.reranker, self.writer) if model != "none"))

    def family_of(self, model: str) -> Family | None:
        """The family of a model, if the region decides how it is invoked."""
        return None if self.invoked else next((family for family in FAMILIES if model in family.models), None)

    def profile_of(self, model: str, region: str) -> InferenceProfile | None:
        """The profile that a model is invoked through in a region that has no fault; none: directly."""
        family = self.family_of(model)
        return family.profile_in(region) if family else self.profile


def matches(geography: str, region: str) -> bool:
    """True if a profile of this geography may be called from a region, or the geography is unknown."""
    return geography not in _BEGINNINGS or bool(re.match(_BEGINNINGS[geography], region))


def invoked_as(model: str, profile: InferenceProfile | None) -> str:
    """The model id that a function passes to Bedrock."""
    return model if profile is None or model == "none" else f"{profile.geography}.{model}"


def profile_arn(model: str, geography: str, *, partition: str, region: str, account: str) -> str:
    return f"arn:{partition}:bedrock:{region}:{account}:inference-profile/{geography}.{model}"


def model_arn(model: str, *, partition: str, region: str) -> str:
    return f"arn:{partition}:bedrock:{region}::foundation-model/{model}"


def arns(
    model: str, profile: InferenceProfile | None, *, partition: str, region: str, account: str
) -> tuple[list[str], list[str]]:
    """ARNs to invoke directly, and ARNs to invoke only through the profile that is among the former."""
    if model == "none":
        return [], []
    if profile is None:
        return [model_arn(model, partition=partition, region=region)], []
    through = profile_arn(model, profile.geography, partition=partition, region=region, account=account)
    named = [region, ""] if profile.geography == "global" and not profile.regions else list(profile.regions)
    return [through], [model_arn(model, partition=partition, region=each) for each in named]
