"""A2A agent cards, 1.0 (`supportedInterfaces`) and before (`url`, `preferredTransport`): one agent a card.

The tags and examples of a card's skills become the agent's; the skills themselves stay in the descriptor.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.descriptors import A2A
from mats.local.imports.formats import naming
from mats.local.imports.formats.mapping import (
    ItemDraft,
    Json,
    MappedValue,
    Source,
    map_each,
    objects,
    text_at,
    value_at,
)

NAME = "a2a-agent-card"

_BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")


def detect(value: Json) -> bool:
    """A card, or a list that begins with one."""
    if isinstance(value, list):
        return bool(value) and _is_card(value[0])
    return _is_card(value)


def _is_card(value: object) -> bool:
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        return False
    if isinstance(value.get("supportedInterfaces"), list):
        return True
    marks = ("url", "protocolVersion", "capabilities", "defaultInputModes", "preferredTransport")
    return ("skills" in value and any(key in value for key in marks)) or {"url", "capabilities"} <= value.keys()


def map_value(value: Json, source: Source) -> Iterator[MappedValue]:
    """The agent, or each of a list."""

    def one(where: str, card: Mapping[str, Any]) -> MappedValue:
        return _agent(where, card, source)

    if isinstance(value, Mapping):
        yield one("", value)
    else:
        yield from map_each("", value, one, what="agent cards")


def _agent(where: str, card: Mapping[str, Any], source: Source) -> MappedValue:
    draft = ItemDraft.create(where, "agent", card, format=NAME)
    endpoint = _endpoint(card)
    home = text_at(card, "provider", "url")
    namespace = source.namespace or naming.namespace_of_url(home, endpoint, source.url)
    if not namespace:
        draft.add_fault("namespace", naming.UNKNOWN_OWNER)
    draft.set("namespace", namespace)
    draft.move_text("name", "name", most=200)
    draft.move_text("description", "description", most=100_000)
    draft.move_text("version", "version", most=100)
    draft.set("provider", text_at(card, "provider", "organization")[:200])
    if len(endpoint) <= 2_048:
        draft.set("endpoint", endpoint)
    else:
        draft.add_note("endpoint", "is longer than 2,048 characters; it stays in the descriptor")
    skills = objects(card.get("skills"))
    draft.set_words("tags", [A2A] + [tag for skill in skills for tag in _list(skill, "tags")])
    draft.set_sentences("examples", [example for skill in skills for example in _list(skill, "examples")])
    return draft.finish()


def _list(skill: Mapping[str, Any], key: str) -> list[Any]:
    values = skill.get(key)
    return values if isinstance(values, list) else []


def _endpoint(card: Mapping[str, Any]) -> str:
    """The preferred endpoint: the first interface of 1.0, else `url`, else the best additional interface."""
    interfaces = [entry for entry in objects(card.get("supportedInterfaces")) if text_at(entry, "url")]
    if interfaces:
        return text_at(interfaces[0], "url")
    if text_at(card, "url"):
        return text_at(card, "url")
    others = [entry for entry in objects(card.get("additionalInterfaces")) if text_at(entry, "url")]
    others.sort(key=lambda entry: _BINDINGS.index(b) if (b := value_at(entry, "transport")) in _BINDINGS else 9)
    return text_at(others[0], "url") if others else ""
