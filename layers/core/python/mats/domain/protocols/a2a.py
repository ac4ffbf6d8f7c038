"""A2A: agent cards, 1.0 (`supportedInterfaces`) and before (`url`, `preferredTransport`), and calls of their agents."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration
from mats.domain.protocols.authentication import AuthScheme, auth_of
from mats.domain.protocols.descriptors import A2A, FORMAT, has_tag, plain_text_at
from mats.domain.protocols.namespaces import namespace_of_url
from mats.domain.protocols.protocol import Call, Facts, Format, ItemDraft, MappedValue, Protocol, Source, map_each
from mats.domain.protocols.values import Json, objects, text_at, to_camel_case, value_at
from mats.domain.text.redaction import placeholders, redact_url

_CARD = "a2a-agent-card"
_LISTS = ("agents", "cards", "agentCards", "agent_cards")  # Keys of lists of cards, or of objects of them by name
_AROUND = ("card", "agentCard", "agent_card", "result")  # Keys of one card
_JSON_RPC, _REST = "JSONRPC", "HTTP+JSON"
_OPERATION = re.compile(r"/message:(?:send|stream)/?$")  # The end of an address of one operation of HTTP+JSON


class A2aCall(Call):
    """An agent of the A2A protocol: its version, and its transport as the agent card names it."""

    protocol: Literal["a2a"] = "a2a"
    url: str
    version: str = ""
    transport: str = ""
    tenant: str = ""  # Of the interface, in 1.0
    auth: tuple[AuthScheme, ...] = ()
    inputs: tuple[str, ...] = ()

    def facts(self) -> Facts:
        version = f"A2A {self.version}".strip()
        return (("protocol", f"{version} over {self.transport}" if self.transport else version), ("endpoint", self.url))

    def message(self, text: str, url: str, id: str = "1") -> tuple[str, dict[str, str], dict[str, Any]] | None:
        """Address, headers and body that send the agent a message; None if it speaks neither JSON-RPC nor HTTP+JSON."""
        is_old, transport = self.version.partition(".")[0] in ("", "0"), self.transport.upper() or _JSON_RPC
        headers = {} if is_old else {"A2A-Version": ".".join(self.version.split(".")[:2])}
        message: dict[str, Any] = {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}
        if transport == _REST:
            if is_old:
                message["content"] = message.pop("parts")
            base, sign, query = url.partition("?")
            tenant = f"/{quote(self.tenant, safe='')}" if self.tenant else ""
            base = base.rstrip("/").removesuffix("/v1") + "/v1" if is_old else base.rstrip("/") + tenant
            return f"{base}/message:send{sign}{query}", headers, {"message": message}
        if is_old:
            part = {"kind": "text", "text": text}
            message = {"kind": "message", "messageId": id, "role": "user", "parts": [part]}
        method = "message/send" if is_old else "SendMessage"
        named = {"tenant": self.tenant} if self.tenant and not is_old else {}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message, **named}}
        return (url, headers, body) if transport == _JSON_RPC else None


def _cards(value: Json) -> tuple[str, Json]:
    """The place of the list of cards in a value, and that list; or the one card."""
    where = next((key for key in _LISTS if isinstance(value_at(value, key), list | Mapping)), "")
    found = value[where] if where else value
    listed = found if isinstance(found, list) else [*found.values()] if where else [found]
    cards = [next((each[key] for key in _AROUND if isinstance(value_at(each, key), Mapping)), each) for each in listed]
    return where, cards if where or isinstance(found, list) else cards[0]


def is_card(value: Json) -> bool:
    """True if a value is a card, a list with one among its first entries, or what is known to be around these."""
    found = _cards(value)[1]
    return any(map(_is_card, found[:10] if isinstance(found, list) else [found]))


def _is_card(card: Json) -> bool:
    if not isinstance(card, Mapping) or not isinstance(card.get("name"), str):
        return False
    keys = to_camel_case(dict.fromkeys(card)).keys()
    marks = {"url", "protocolVersion", "capabilities", "defaultInputModes", "preferredTransport"}
    is_old = ("skills" in keys and not keys.isdisjoint(marks)) or {"url", "capabilities"} <= keys
    return is_old or "supportedInterfaces" in keys


def registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    """One agent for each card, with the tags and examples of its skills, which stay in the descriptor."""
    where, cards = _cards(value)
    return map_each(where, cards, source, _agent, what="agent cards")


class _Interface(NamedTuple):
    url: str
    transport: str
    version: str
    tenant: str


def _interfaces(card: Mapping[str, Any]) -> list[_Interface]:
    """Those first that HTTP reaches, of public hosts, then `url`."""
    version = plain_text_at(card, "protocolVersion")
    stated = plain_text_at(card, "preferredTransport") or (_JSON_RPC if version else "")
    main = {"url": card.get("url"), "transport": stated}
    found = [
        _Interface(
            url, plain_text_at(each, "protocolBinding") or plain_text_at(each, "transport"),
            plain_text_at(each, "protocolVersion") or version, plain_text_at(each, "tenant"),
        )
        for each in [*objects(card.get("supportedInterfaces")), main, *objects(card.get("additionalInterfaces"))]
        if (url := text_at(each, "url"))
    ]  # fmt: skip
    found.sort(key=lambda each: not namespace_of_url(each.url))
    return sorted(
        found, key=lambda each: each.transport.upper() not in ("", _JSON_RPC, _REST) or each.url[:4] != "http"
    )


def _agent(where: str, card: Mapping[str, Any], source: Source) -> MappedValue:
    card = to_camel_case(card)
    endpoint = next((each.url for each in _interfaces(card)), "")
    namespace = source.namespace or namespace_of_url(text_at(card, "provider", "url"), endpoint, source.url)
    draft = ItemDraft.create(where, "agent", namespace, card, format=_CARD)
    for attribute in ("name", "description", "version"):
        draft.move_text(attribute)
    draft.set_text("provider", text_at(card, "provider", "organization"))
    draft.set_endpoint(endpoint)
    if _OPERATION.search(endpoint):
        draft.add_note("endpoint", "is the address of one operation: messages are sent by HTTP+JSON to that above it")
    draft.set_words("tags", [A2A, *_of_skills(card, "tags")])
    draft.set_words("examples", _of_skills(card, "examples"))
    return draft.finish()


def _of_skills(card: Mapping[str, Any], key: str) -> list[Any]:
    """The entries of this list in every skill."""
    lists = (skill.get(key) for skill in objects(card.get("skills")))
    return [entry for entries in lists if isinstance(entries, list) for entry in entries]


def invocation(registration: Registration, descriptor: Mapping[str, Any]) -> A2aCall | None:
    """The call of the interface at the endpoint, else of the card's first one that can be called."""
    card, endpoint = to_camel_case(descriptor), registration.endpoint
    marks = ("supportedInterfaces", "protocolVersion", "preferredTransport")
    if card.get(FORMAT) != _CARD and not has_tag(registration, A2A) and card.keys().isdisjoint(marks):
        return None
    own = [each for each in _interfaces(card) if endpoint in ("", each.url)]
    own += _interfaces({**card, "url": endpoint, "supportedInterfaces": (), "additionalInterfaces": ()})
    if not own or (url := redact_url(own[0].url)) is None:
        return None
    base = _OPERATION.sub("", url)
    return A2aCall(
        url=base,
        version=own[0].version,
        transport=own[0].transport if base == url else _REST,
        tenant=own[0].tenant,
        auth=auth_of(card.get("securityRequirements") or card.get("security"), card.get("securitySchemes")),
        inputs=placeholders(base),
    )


PROTOCOL = Protocol(
    formats=(Format(_CARD, "an A2A agent card", 45, is_card, registrations),),
    searched={_CARD: frozenset({"skills"})},
    invocation=invocation,
    kind=Kind.AGENT,
)
