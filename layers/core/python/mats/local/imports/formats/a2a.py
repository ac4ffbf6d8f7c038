"""A2A agent cards, 1.0 (`supportedInterfaces`) and before (`url`, `preferredTransport`): one agent a card.

The tags and examples of a card's skills become the agent's; the skills themselves stay in the descriptor.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.protocols.descriptors import A2A
from mats.local.imports.formats import naming
from mats.local.imports.formats.mapping import ItemDraft, MappedValue, Source, map_one_or_each
from mats.local.imports.formats.values import Json, first_of, objects, text_at, value_at

NAME = "a2a-agent-card"

_BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")


def detect(value: Json) -> bool:
    """A card, or a list that begins with one."""
    card = first_of(value)
    if not isinstance(card, Mapping) or not isinstance(card.get("name"), str):
        return False
    if isinstance(card.get("supportedInterfaces"), list):
        return True
    marks = ("url", "protocolVersion", "capabilities", "defaultInputModes", "preferredTransport")
    return ("skills" in card and any(key in card for key in marks)) or {"url", "capabilities"} <= card.keys()


def map_value(value: Json, source: Source) -> Iterator[MappedValue]:
    """The agent, or each of a list."""
    return map_one_or_each(value, source, _agent, what="agent cards")


def _agent(where: str, card: Mapping[str, Any], source: Source) -> MappedValue:
    endpoint = _endpoint(card)
    namespace = source.namespace or naming.namespace_of_url(text_at(card, "provider", "url"), endpoint, source.url)
    draft = ItemDraft.create(where, "agent", namespace, card, format=NAME)
    for attribute in ("name", "description", "version"):
        draft.move_text(attribute)
    draft.set_text("provider", text_at(card, "provider", "organization"))
    draft.set_endpoint(endpoint)
    skills = objects(card.get("skills"))
    draft.set_words("tags", [A2A] + [tag for skill in skills for tag in _list(skill, "tags")])
    draft.set_words("examples", [example for skill in skills for example in _list(skill, "examples")])
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
