"""A2A: agent cards, 1.0 (`supportedInterfaces`) and before (`url`, `preferredTransport`), and calls of their agents."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration
from mats.domain.protocols.authentication import AuthScheme, auth_of
from mats.domain.protocols.descriptors import A2A, FORMAT, has_tag, plain_text_at
from mats.domain.protocols.protocol import (
    Call,
    Facts,
    Format,
    ItemDraft,
    Json,
    MappedValue,
    Protocol,
    Source,
    first_of,
    map_each,
    namespace_of_url,
    objects,
    text_at,
    value_at,
)
from mats.domain.text.redaction import placeholders, redact_url

_CARD = "a2a-agent-card"
_BINDINGS = ("JSONRPC", "HTTP+JSON", "GRPC")


class A2aCall(Call):
    """An agent of the A2A protocol: its version, and its transport as the agent card names it."""

    protocol: Literal["a2a"] = "a2a"
    url: str
    version: str = ""
    transport: str = ""
    auth: tuple[AuthScheme, ...] = ()
    inputs: tuple[str, ...] = ()

    def facts(self) -> Facts:
        version = f"A2A {self.version}".strip()
        return (("protocol", f"{version} over {self.transport}" if self.transport else version), ("endpoint", self.url))

    def message(self, text: str, id: str = "1") -> tuple[dict[str, str], dict[str, Any]] | None:
        """Headers and JSON-RPC body that send the agent a message; None if it does not speak JSON-RPC."""
        if self.transport.upper() not in ("", "JSONRPC"):
            return None
        message: dict[str, Any] = {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}
        method, headers = "SendMessage", {"A2A-Version": ".".join(self.version.split(".")[:2])}
        if self.version.partition(".")[0] in ("", "0"):
            part = {"kind": "text", "text": text}
            message = {"kind": "message", "messageId": id, "role": "user", "parts": [part]}
            method, headers = "message/send", {}
        return headers, {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}


def is_card(value: Json) -> bool:
    """True if a value is a card, or a list that begins with one."""
    card = first_of(value)
    if not isinstance(card, Mapping) or not isinstance(card.get("name"), str):
        return False
    if isinstance(card.get("supportedInterfaces"), list):
        return True
    marks = ("url", "protocolVersion", "capabilities", "defaultInputModes", "preferredTransport")
    return ("skills" in card and any(key in card for key in marks)) or {"url", "capabilities"} <= card.keys()


def registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """One agent for each card, with the tags and examples of its skills, which stay in the descriptor."""
    return map_each("", value, source, _agent, what="agent cards")


def _agent(where: str, card: Mapping[str, Any], source: Source) -> MappedValue:
    endpoint = _preferred_endpoint(card)
    namespace = source.namespace or namespace_of_url(text_at(card, "provider", "url"), endpoint, source.url)
    draft = ItemDraft.create(where, "agent", namespace, card, format=_CARD)
    for attribute in ("name", "description", "version"):
        draft.move_text(attribute)
    draft.set_text("provider", text_at(card, "provider", "organization"))
    draft.set_endpoint(endpoint)
    draft.set_words("tags", [A2A, *_of_skills(card, "tags")])
    draft.set_words("examples", _of_skills(card, "examples"))
    return draft.finish()


def _of_skills(card: Mapping[str, Any], key: str) -> list[Any]:
    """The entries of this list in every skill."""
    lists = (skill.get(key) for skill in objects(card.get("skills")))
    return [entry for entries in lists if isinstance(entries, list) for entry in entries]


def _preferred_endpoint(card: Mapping[str, Any]) -> str:
    """The first interface of 1.0, else `url`, else the best additional interface."""
    interfaces = [entry for entry in objects(card.get("supportedInterfaces")) if text_at(entry, "url")]
    if interfaces:
        return text_at(interfaces[0], "url")
    if text_at(card, "url"):
        return text_at(card, "url")
    others = [entry for entry in objects(card.get("additionalInterfaces")) if text_at(entry, "url")]
    others.sort(key=lambda entry: _BINDINGS.index(b) if (b := value_at(entry, "transport")) in _BINDINGS else 9)
    return text_at(others[0], "url") if others else ""


def invocation(registration: Registration, descriptor: Mapping[str, Any]) -> A2aCall | None:
    """The call of the interface at the endpoint, else of the card's preferred one."""
    marks = ("supportedInterfaces", "protocolVersion", "preferredTransport")
    declared = descriptor.get(FORMAT) == _CARD or has_tag(registration, A2A)
    if not (declared or any(mark in descriptor for mark in marks)):
        return None
    interfaces = [*objects(descriptor.get("supportedInterfaces")), *objects(descriptor.get("additionalInterfaces"))]
    named = next((each for each in interfaces if each.get("url") == registration.endpoint), {})
    if not registration.endpoint and interfaces:
        named = interfaces[0]
    url = redact_url(registration.endpoint or plain_text_at(named, "url") or plain_text_at(descriptor, "url"))
    if url is None:
        return None
    of_card = plain_text_at(descriptor, "preferredTransport") or ("JSONRPC" if "protocolVersion" in descriptor else "")
    security = descriptor.get("securityRequirements") or descriptor.get("security")
    return A2aCall(
        url=url,
        version=plain_text_at(named, "protocolVersion") or plain_text_at(descriptor, "protocolVersion"),
        transport=plain_text_at(named, "protocolBinding") or plain_text_at(named, "transport") or of_card,
        auth=auth_of(security, descriptor.get("securitySchemes")),
        inputs=placeholders(url),
    )


PROTOCOL = Protocol(
    formats=(Format(_CARD, "an A2A agent card", 60, is_card, registrations),),
    searched={_CARD: frozenset({"skills"})},
    invocation=invocation,
    kind=Kind.AGENT,
)
