"""The state of a source, as the command line and the console show it."""

import shlex
from typing import Any

from mats.domain.profile.sync import SourceKind, TrackedSource
from mats.domain.text.redaction import redact_arguments
from mats.local.imports.addresses import is_address, redact
from mats.ports import SourceState


def shown_location(source: TrackedSource) -> str:
    """Where a source is, without what may be secret in an address or in arguments."""
    if source.kind is SourceKind.BEDROCK:
        return "bedrock"
    first = source.location[0]
    shown = redact(first) if is_address(first) else shlex.join(redact_arguments(source.location))
    return shown if source.kind is SourceKind.DOCUMENT else f"{source.kind} {shown}"


def definition_json(source: TrackedSource) -> dict[str, Any]:
    return {
        "name": source.name,
        "kind": source.kind,
        "from": shown_location(source),
        "namespace": source.namespace or None,
        "timeout_s": source.timeout_s,
        **({"live": True} if source.live else {}),
    }


def state_json(state: SourceState) -> dict[str, Any]:
    """The definition, the number of entries, and the outcome of the latest sync; times are ISO 8601 in UTC."""
    return {
        **definition_json(state.source),
        "entries": state.entries,
        "gone": state.gone,
        "tried": state.run.tried or None,
        "succeeded": state.run.succeeded or None,
        "error": state.run.error or None,
    }
