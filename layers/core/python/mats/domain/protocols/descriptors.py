"""The entries of a descriptor, whatever its protocol: about the capability itself, and about calling it."""

import json
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any

from mats.domain.capability.registration import Registration
from mats.domain.protocols.references import References
from mats.domain.protocols.values import mapping_at
from mats.domain.text.redaction import is_plain

FORMAT = "format"  # The entry that names the format of an imported descriptor

SERVER, FILES, INSTRUCTIONS = "server", "files", "instructions"
"""The entries about the server of an MCP tool, about the files of a skill, and a skill's instructions."""

MCP, A2A = "mcp", "a2a"  # Tags for the protocol of an endpoint: set by importers, read by ARD clients

TITLES = ("summary", "title")  # The entries that may hold the title of a capability
_LONGEST_TITLE, _LONGEST_TEXT = 200, 2_048
ABOUT_ITSELF = (*TITLES, "category", "domain", "provider_description", INSTRUCTIONS)
"""Entries about the capability as a whole, not about its parameters or skills."""
MAX_SCHEMA_BYTES = 32_000  # A larger input schema is cut: too large for a model's context
SCHEMA_CUT = (
    f"input_schema: is larger than {MAX_SCHEMA_BYTES:,} bytes: its texts are shortened, its deepest parts left out"
)


def without_call(descriptor: Mapping[str, Any]) -> Mapping[str, Any]:
    """The descriptor without entries that are only about calling: no model reads them, and no search."""
    about_call = {SERVER} if _is_server(descriptor.get(SERVER)) else set()
    about_call |= {FILES} if descriptor.get(FORMAT) == "agent-skill" else set()
    return {key: value for key, value in descriptor.items() if key not in about_call} if about_call else descriptor


def _is_server(value: object) -> bool:
    return isinstance(value, Mapping) and any(isinstance(value.get(key), str) for key in ("command", "url"))


def title_of(descriptor: Mapping[str, object] | None) -> str:
    """The first of `TITLES` that is a text of at most 200 characters; empty if there is none."""
    texts = (descriptor.get(key) for key in TITLES) if descriptor else ()
    return next((text for text in texts if isinstance(text, str) and 0 < len(text.strip()) <= _LONGEST_TITLE), "")


def about_itself(descriptor: Mapping[str, object] | None) -> list[object]:
    """The entries about the capability as a whole, without its title."""
    title = title_of(descriptor)
    return [value for key, value in (descriptor or {}).items() if key in ABOUT_ITSELF and value != title]


def input_schema_of(registration: Registration) -> tuple[str, bool]:
    """The input schema as JSON text, so that stores need not nest it and ranking need not parse it; and if cut."""
    described = (registration.descriptor or {}).get("inputSchema")
    schema = registration.input_schema or (described if isinstance(described, dict) else None)
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False) if schema else ""
    if len(text.encode()) <= MAX_SCHEMA_BYTES:
        return text, False
    cut = References(schema or {}, is_openapi=False).expand(schema, MAX_SCHEMA_BYTES)
    return json.dumps(cut, separators=(",", ":"), ensure_ascii=False), True


def has_tag(registration: Registration, tag: str) -> bool:
    return any(each.lower() == tag for each in registration.tags)


def plain_text_at(value: Mapping[str, Any], key: str) -> str:
    """A text that can be shown in a call; empty for one with hidden characters, or of over 2,048 characters."""
    found = value.get(key)
    return found.strip() if isinstance(found, str) and is_plain(found) and len(found) <= _LONGEST_TEXT else ""


class Effect(StrEnum):
    """What an owner says of the effects of a call."""

    READS = "read-only"
    SAFE = "non-destructive"
    DESTROYS = "destructive"


READS, SAFE, DESTROYS = Effect


def effects_of(descriptor: Mapping[str, Any] | None, method: str = "") -> tuple[Effect, ...]:
    """What an MCP tool's annotations say, as far as they are given, or the method of an HTTP call."""
    hints = mapping_at(descriptor, "annotations")
    destroys = hints.get("destructiveHint")
    reads = hints.get("readOnlyHint") is True or method in ("GET", "HEAD")
    stated = ((READS, reads), (SAFE, destroys is False), (DESTROYS, destroys is True or method == "DELETE"))
    return tuple(effect for effect, holds in stated if holds)


def annotations_of(effects: Collection[str]) -> dict[str, bool]:
    """The annotations of an MCP tool with these effects."""
    stated = (("readOnlyHint", READS, True), ("destructiveHint", SAFE, False), ("destructiveHint", DESTROYS, True))
    return {name: value for name, effect, value in stated if effect in effects}


def effect_tag(effect: str) -> str:
    """An effect among the tags; a line break is in no tag of an owner."""
    return f"\n{effect}"
