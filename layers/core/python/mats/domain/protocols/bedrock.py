"""Amazon Bedrock: results of ListFoundationModels and ListInferenceProfiles, one model each, and calls of them."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration
from mats.domain.protocols.descriptors import FORMAT
from mats.domain.protocols.namespaces import join_labels, to_label
from mats.domain.protocols.protocol import Call, Facts, Format, ItemDraft, MappedValue, Protocol, Source, map_each
from mats.domain.protocols.values import Json, objects, text_at, texts

_MODEL, _PROFILE = "bedrock-model", "bedrock-inference-profile"
_LISTS = ("modelSummaries", "inferenceProfileSummaries")
_MODEL_ARN = re.compile(r"arn:aws[\w-]*:bedrock:([a-z0-9-]*):\d*:(?:foundation-model|inference-profile)/([\w.:/-]+)")
_HOST = re.compile(r"https://bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com/?")


class BedrockCall(Call):
    """A model or an inference profile of Amazon Bedrock."""

    protocol: Literal["bedrock"] = "bedrock"
    model: str
    region: str = ""

    def facts(self) -> Facts:
        return (("protocol", "Amazon Bedrock"), ("model", self.model), ("region", self.region))


def is_list(value: Json) -> bool:
    """True if a value is a result with one of the two lists, or both together."""
    return isinstance(value, Mapping) and any(isinstance(value.get(key), list) for key in _LISTS)


def registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """Every model, then every inference profile."""
    for key, one in zip(_LISTS, (_model, _profile), strict=True):
        if isinstance(value, Mapping) and key in value:
            yield from map_each(key, value[key], source, one, what="summaries")


def _model(where: str, summary: Mapping[str, Any], source: Source) -> MappedValue:
    namespace = source.namespace or _namespace(text_at(summary, "modelArn"))
    draft = ItemDraft.create(where, "model", namespace, summary, format=_MODEL)
    draft.move_text("name", "modelId")
    draft.set_text("description", _description(summary))
    draft.set_text("provider", text_at(summary, "providerName"))
    draft.move_text("endpoint", "modelArn")
    if text_at(summary, "modelLifecycle", "status") == "LEGACY":
        draft.set("lifecycle", "deprecated")
    return draft.finish()


def _description(summary: Mapping[str, Any]) -> str:
    """A description from the other fields: Bedrock has none for a model."""
    name, provider = text_at(summary, "modelName"), text_at(summary, "providerName")
    if not name:
        return ""
    parts = [f"{name} by {provider} on Amazon Bedrock" if provider else f"{name} on Amazon Bedrock"]
    for verb, key in (("reads", "inputModalities"), ("writes", "outputModalities")):
        listed = " and ".join(value.lower() for value in texts(summary.get(key)))
        parts += [f"{verb} {listed}"] if listed else []
    return "; ".join(parts) + "."


def _profile(where: str, summary: Mapping[str, Any], source: Source) -> MappedValue:
    namespace = source.namespace or _namespace(text_at(summary, "inferenceProfileArn"))
    draft = ItemDraft.create(where, "model", namespace, summary, format=_PROFILE)
    draft.move_text("name", "inferenceProfileId")
    name = text_at(summary, "inferenceProfileName")
    description = text_at(summary, "description")
    draft.rest.pop("description" if description else "", None)
    regions = sorted({_region(text_at(model, "modelArn")) for model in objects(summary.get("models"))} - {""})
    runs_in = f" Runs in {', '.join(regions)}." if regions else ""
    text = description or (f"Inference profile {name} of Amazon Bedrock." if name else "")
    draft.set_text("description", f"{text}{runs_in}".strip())
    draft.move_text("endpoint", "inferenceProfileArn")
    return draft.finish()


def _namespace(arn: str) -> str:
    """A namespace with the region, because a model's ARN has it: each region has its own endpoint."""
    return join_labels(("com", "amazon", "bedrock", _region(arn)))


def _region(arn: str) -> str:
    parts = arn.split(":")
    return to_label(parts[3]) if len(parts) > 5 and parts[0] == "arn" else ""


def invocation(registration: Registration, descriptor: Mapping[str, Any]) -> BedrockCall | None:
    """The model that the endpoint's ARN names; at Bedrock's own address, and in its lists, the capability's name."""
    if arn := _MODEL_ARN.fullmatch(registration.endpoint):
        return BedrockCall(model=arn[2], region=arn[1])
    host = _HOST.fullmatch(registration.endpoint)
    if host or descriptor.get(FORMAT) in (_MODEL, _PROFILE):
        return BedrockCall(model=registration.name, region=host[1] if host else "")
    return None


PROTOCOL = Protocol(
    formats=(Format("bedrock-models", "a list of Bedrock's models", 90, is_list, registrations),),
    searched={_MODEL: frozenset(), _PROFILE: frozenset()},
    invocation=invocation,
    kind=Kind.MODEL,
)
