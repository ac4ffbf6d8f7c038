"""Catalogs of Agentic Resource Discovery: a publisher's `ard.json`, or a registry's list of entries.

An entry names its capability: `urn:air:pay.example.com:tool:refund` is the tool `com.example.pay/refund`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.capability.capability import Kind, parts
from mats.domain.errors import RequestInvalid
from mats.domain.protocols.descriptors import A2A, MCP
from mats.domain.protocols.protocol import Format, ItemDraft, MappedValue, Source, map_each, rejection, remark
from mats.domain.protocols.values import Json, objects, text_at, value_at
from mats.edge.ard.entries import AGENT_CARD, REGISTRY, SERVER_CARD, SKILL, own_type, parse_identifier

_NAME = "ard-entry"
_LISTS = ("entries", "items")
_KINDS = {SERVER_CARD: Kind.TOOL, AGENT_CARD: Kind.AGENT, SKILL: Kind.SKILL, **{own_type(kind): kind for kind in Kind}}
_GROUPS = frozenset("server mcp agent tool skill model".split())
_TAGS = {SERVER_CARD: MCP, AGENT_CARD: A2A}


def entries(value: Json) -> list[Mapping[str, Any]]:
    return next((list(objects(found)) for key in _LISTS if (found := value_at(value, key))), [])


def _is_catalog(value: Json) -> bool:
    return any(text_at(entry, "identifier").startswith("urn:air:") for entry in entries(value)[:10])


def _registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """Each entry, by its place in the list."""
    key = next((key for key in _LISTS if value_at(value, key)), _LISTS[0])
    yield from map_each(key, value_at(value, key), source, _entry, what="entries")


def _entry(where: str, entry: Mapping[str, Any], source: Source) -> MappedValue:
    type_ = text_at(entry, "type")
    kind = _KINDS.get(type_)
    if kind is None:
        reason = "is another registry: add it by its own address" if type_ == REGISTRY else "is of no kind known here"
        return remark(where, "type", f"{type_[:80]!r} {reason}; skipped")
    named = _names(text_at(entry, "identifier"))
    if named is None:
        return rejection(f"{where}.identifier", "must be of the form urn:air:<publisher>:<namespace>:<name>")
    namespace, name = named
    draft = ItemDraft.create(where, kind, source.namespace or namespace, entry, format=_NAME)
    draft.set_text("name", name)
    draft.move_text("description")
    draft.move_text("version")
    draft.set_text("provider", text_at(entry, "metadata", "provider"))
    declared = [_TAGS[type_]] if type_ in _TAGS else []
    tags = draft.rest.pop("tags", None)
    draft.set_words("tags", declared + (tags if isinstance(tags, list) else []))
    draft.set_words("examples", draft.rest.pop("representativeQueries", None))
    is_profile = type_ == own_type(kind)
    draft.set_endpoint(text_at(entry, "metadata", "endpoint") or ("" if is_profile else text_at(entry, "url")))
    if text_at(entry, "metadata", "lifecycle") == "deprecated":
        draft.set("lifecycle", "deprecated")
    for changing in ("metadata", "updatedAt"):
        draft.rest.pop(changing, None)
    return draft.finish()


def _names(identifier: str) -> tuple[str, str] | None:
    """Namespace and name; None if it is no identifier. A registry like this one has the kind before the name."""
    try:
        own = parse_identifier(identifier)
    except RequestInvalid:
        return None
    if own:
        return parts(own[1])
    publisher, *segments = identifier.split(":")[2:]
    if len(segments) > 1 and segments[0] in _GROUPS:
        del segments[0]
    return ".".join(reversed(publisher.lower().split("."))), "/".join(segments)


FORMAT = Format(_NAME, "an ARD catalog", 55, _is_catalog, _registrations)
