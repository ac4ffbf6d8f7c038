"""How functions and operators invoke models: the ids they pass to Bedrock and the rights they need, in any region.

The template names no region: a mapping has what Nova needs in each (docs/decisions/0027-models-by-region.md).
"""

from collections.abc import Sequence

from aws_cdk import Aws, CfnCondition, CfnMapping, Fn
from aws_cdk import aws_iam as iam
from constructs import Construct

from infra import inference_profiles
from infra.constructs.shared import allow
from infra.inference_profiles import FAMILIES, Family, Models, model_arn, profile_arn

_DIRECT = "none"
_DESTINATIONS = max(len(each.destinations) for family in FAMILIES for each in family.geographies.values())


class ModelAccess(Construct):
    """Ids and rights of the chosen models."""

    def __init__(self, scope: Construct, id: str, *, models: Models) -> None:
        super().__init__(scope, id)
        self.chosen = models
        used = {family.mapping: family for model in models.language_models if (family := models.family_of(model))}
        self._regions = {name: self._mapping(family) for name, family in used.items()}
        for name, family in used.items():
            if family.direct:
                condition = Fn.condition_equals(self._in_region(name, "Geography"), _DIRECT)
                self._directly = CfnCondition(self, "Directly", expression=condition)
                self._directly.override_logical_id("ModelsDirectly")

    def _mapping(self, family: Family) -> CfnMapping:
        made = CfnMapping(self, family.mapping, mapping={region: _row(family, region) for region in family.regions})
        made.override_logical_id(family.mapping)
        return made

    def id_of(self, model: str) -> str:
        """The id that a function passes to Bedrock."""
        if family := self.chosen.family_of(model):
            return self._either(family, model, f"{self._in_region(family.mapping, 'Geography')}.{model}")
        return inference_profiles.invoked_as(model, self.chosen.profile)

    def statements(self, model: str) -> list[iam.PolicyStatement]:
        """The right to invoke a language model; in other regions only through a profile."""
        if family := self.chosen.family_of(model):
            destinations = [self._in_region(family.mapping, f"Destination{n}") for n in range(1, _DESTINATIONS + 1)]
            through = profile_arn(model, self._in_region(family.mapping, "Geography"), **_HERE)
            directly = [self._either(family, model_arn(model, partition=Aws.PARTITION, region=Aws.REGION), through)]
            behind = [model_arn(model, partition=Aws.PARTITION, region=each) for each in destinations]
        else:
            directly, behind = inference_profiles.arns(model, self.chosen.profile, **_HERE)
            through = directly[0] if directly else ""
        found = [_invoke(directly)] if directly else []
        return [*found, _invoke(behind, through=through)] if behind else found

    def encoder_statements(self) -> list[iam.PolicyStatement]:
        """The right to invoke the encoder, which has no profile."""
        directly, _ = inference_profiles.arns(self.chosen.encoder, None, **_HERE)
        return [_invoke(directly)] if directly else []

    def _in_region(self, mapping: str, column: str) -> str:
        return self._regions[mapping].find_in_map(Aws.REGION, column)

    def _either(self, family: Family, directly: str, through: str) -> str:
        if not family.direct:
            return through
        return Fn.condition_if(self._directly.logical_id, directly, through).to_string()


_HERE = {"partition": Aws.PARTITION, "region": Aws.REGION, "account": Aws.ACCOUNT_ID}


def _row(family: Family, region: str) -> dict[str, str]:
    """The destinations of a family in a region. Every row has the same columns, so the last one may be repeated."""
    profile = family.profile_in(region)
    destinations = profile.regions if profile else (region,)
    padded = (*destinations, *[destinations[-1]] * _DESTINATIONS)[:_DESTINATIONS]
    named = {f"Destination{n}": each for n, each in enumerate(padded, start=1)}
    return {"Geography": profile.geography if profile else _DIRECT, **named}


def _invoke(resources: Sequence[str], *, through: str = "") -> iam.PolicyStatement:
    through_it = {"StringEquals": {"bedrock:InferenceProfileArn": through}} if through else None
    return allow("bedrock:InvokeModel", on=resources, where=through_it)
