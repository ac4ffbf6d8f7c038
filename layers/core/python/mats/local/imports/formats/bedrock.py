"""Results of Amazon Bedrock's ListFoundationModels and ListInferenceProfiles: one model each.

The namespace contains the region, because a model's ARN does: each region has its own endpoint.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.local.imports.formats import naming
from mats.local.imports.formats.mapping import ItemDraft, MappedValue, Source, map_each
from mats.local.imports.formats.values import Json, objects, text_at

NAME = "bedrock-models"

_LISTS = ("modelSummaries", "inferenceProfileSummaries")
_NAMESPACE = "com.amazon.bedrock"


def detect(value: Json) -> bool:
    """A result with one of the two lists, or both together."""
    return isinstance(value, Mapping) and any(isinstance(value.get(key), list) for key in _LISTS)


def map_value(value: Json, source: Source) -> Iterator[MappedValue]:
    """Every model, then every inference profile."""
    for key, one in zip(_LISTS, (_model, _profile), strict=True):
        if isinstance(value, Mapping) and key in value:
            yield from map_each(key, value[key], source, one, what="summaries")


def _model(where: str, summary: Mapping[str, Any], source: Source) -> MappedValue:
    namespace = source.namespace or _namespace(text_at(summary, "modelArn"))
    draft = ItemDraft.create(where, "model", namespace, summary, format="bedrock-model")
    draft.move_text("name", "modelId")
    draft.set_text("description", _about_model(summary))
    draft.set_text("provider", text_at(summary, "providerName"))
    draft.move_text("endpoint", "modelArn")
    if text_at(summary, "modelLifecycle", "status") == "LEGACY":
        draft.set("lifecycle", "deprecated")
    return draft.finish()


def _about_model(summary: Mapping[str, Any]) -> str:
    """A description from the other fields: Bedrock has none."""
    name, provider = text_at(summary, "modelName"), text_at(summary, "providerName")
    if not name:
        return ""
    reads, writes = _join_modalities(summary, "inputModalities"), _join_modalities(summary, "outputModalities")
    parts = [f"{name} by {provider} on Amazon Bedrock" if provider else f"{name} on Amazon Bedrock"]
    parts += [f"reads {reads}"] if reads else []
    parts += [f"writes {writes}"] if writes else []
    return "; ".join(parts) + "."


def _join_modalities(summary: Mapping[str, Any], key: str) -> str:
    values = summary.get(key)
    return " and ".join(v.lower() for v in values if isinstance(v, str)) if isinstance(values, list) else ""


def _profile(where: str, summary: Mapping[str, Any], source: Source) -> MappedValue:
    namespace = source.namespace or _namespace(text_at(summary, "inferenceProfileArn"))
    draft = ItemDraft.create(where, "model", namespace, summary, format="bedrock-inference-profile")
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
    return naming.join_labels((*_NAMESPACE.split("."), _region(arn)))


def _region(arn: str) -> str:
    parts = arn.split(":")
    return naming.to_label(parts[3]) if len(parts) > 5 and parts[0] == "arn" else ""
