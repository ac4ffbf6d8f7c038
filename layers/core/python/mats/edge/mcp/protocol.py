"""The Model Context Protocol, as far as a server needs it that keeps nothing between two messages.

Spoken are 2026-07-28, where every request says its version and its client, and the versions before it, where
`initialize` agreed on one: https://modelcontextprotocol.io/specification. What carries the messages is not known here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mats import __version__
from mats.edge.mcp import tools
from mats.edge.mcp.tools import Session, UnknownTool

CURRENT = "2026-07-28"
WITH_HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions that `initialize` agrees on, newest first."""
SUPPORTED = (CURRENT, *WITH_HANDSHAKE)

MAX_BATCH = 16
"""Messages; each may be a search."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_SERVER = {"name": "mats", "title": "mats: capability discovery", "version": __version__}
_OFFERS: Mapping[str, Any] = {"tools": {}}
_FRESH_MS = 3_600_000
"""How long a client may keep the list of tools, which changes with releases only."""
_LONGEST_ECHO = 100

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What answers one request: a result, or an error with one of the codes above. No id: the request's was unreadable.

    `stateless` tells a reply to 2026-07-28, whose transport shows an error in its status, too.
    """

    id: str | int | None
    result: Mapping[str, Any] | None = None
    code: int = 0
    message: str = ""
    data: Mapping[str, Any] | None = None
    stateless: bool = False

    def to_json(self) -> dict[str, Any]:
        """The JSON-RPC message."""
        if self.result is not None:
            return {"jsonrpc": "2.0", "id": self.id, "result": dict(self.result)}
        error = {"code": self.code, "message": self.message, **({"data": dict(self.data)} if self.data else {})}
        return {"jsonrpc": "2.0", "id": self.id, "error": error}


@dataclass(frozen=True, slots=True)
class Envelope:
    """What a transport says of a message beside it: the version, the method and the name that its headers claim."""

    version: str | None
    method: str | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class _Request:
    id: str | int
    method: str
    params: Message = field(default_factory=dict)

    def error(self, code: int, message: str, data: Message | None = None, *, stateless: bool = False) -> Reply:
        return Reply(self.id, code=code, message=message, data=data, stateless=stateless)


def reply_to(message: object, session: Session, envelope: Envelope | None = None) -> Reply | None:
    """The reply to one message; None where none is due: to a notification, or to a reply of the client's.

    Args:
        message: Decoded JSON, whatever it is.
        session: The application and the caller.
        envelope: What the transport's headers say; None where it has none.
    """
    if fault := _fault(message):
        return Reply(None, code=INVALID_REQUEST, message=fault)
    assert isinstance(message, dict)  # noqa: S101 - or it were at fault
    if "method" not in message:
        return None
    version = envelope.version if envelope else None
    if "id" not in message:
        return None if version in (None, *SUPPORTED) else _refused_version(None, version)
    request = _Request(message["id"], message["method"], message.get("params", {}))
    if not isinstance(request.params, dict):
        return request.error(INVALID_PARAMS, "`params` must be an object")
    if _is_stateless(message) or version not in (None, *WITH_HANDSHAKE):
        return _stateless(request, session, envelope)
    return _dispatched(request, session, _AFTER_HANDSHAKE)


def _fault(message: object) -> str:
    """Why something is no message; empty if it is one."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return "not a JSON-RPC 2.0 message"
    if "method" not in message and not message.keys().isdisjoint(("result", "error")):
        return ""
    if not isinstance(message.get("method"), str):
        return "a request needs a `method`"
    id = message.get("id", "")
    if not isinstance(id, str | int) or isinstance(id, bool):
        return "the `id` of a request is a string or a whole number"
    return ""


def _is_stateless(message: Mapping[str, Any]) -> bool:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and _VERSION in meta


def replies_to(messages: list[object], session: Session) -> list[Reply]:
    """The replies to a batch, which 2025-03-26 allows."""
    return [reply for message in messages if (reply := _in_batch(message, session))]


def _in_batch(message: object, session: Session) -> Reply | None:
    if isinstance(message, dict) and (message.get("method") == "initialize" or _is_stateless(message)):
        return Reply(None, code=INVALID_REQUEST, message="this message cannot be part of a batch")
    return reply_to(message, session)


def _stateless(request: _Request, session: Session, envelope: Envelope | None) -> Reply:
    """The reply to a request that says by itself what there is to know."""
    version = envelope.version if envelope else None
    meta = _meta(request)
    missing = [key for key in (_VERSION, _CAPABILITIES) if key not in meta]
    if missing and version not in (None, *SUPPORTED):
        return _refused_version(request.id, version)
    if missing:
        text = f"`params._meta` lacks {', '.join(missing)}"
        return request.error(INVALID_PARAMS, text, stateless=True)
    said = meta[_VERSION]
    if envelope and (mismatch := _mismatch(request, said, envelope)):
        return request.error(HEADER_MISMATCH, mismatch, stateless=True)
    if not isinstance(said, str):
        return request.error(INVALID_PARAMS, f"{_VERSION} must be a string", stateless=True)
    if said != CURRENT:
        return _refused_version(request.id, said)
    return _dispatched(request, session, _STATELESS, stateless=True)


def _mismatch(request: _Request, version: object, envelope: Envelope) -> str:
    """How the headers differ from what they mirror; empty if they do not."""
    if envelope.version != version:
        return "the header MCP-Protocol-Version is not the version of the request"
    if envelope.method != request.method:
        return "the header Mcp-Method is not the method of the request"
    if request.method == "tools/call" and envelope.name != request.params.get("name"):
        return "the header Mcp-Name is not the name of the tool"
    return ""


def _refused_version(id: str | int | None, version: object) -> Reply:
    asked = str(version)[:_LONGEST_ECHO]
    return Reply(
        id,
        code=UNSUPPORTED_VERSION,
        message=f"Unsupported protocol version {asked!r}; supported are {', '.join(SUPPORTED)}",
        data={"supported": list(SUPPORTED), "requested": asked},
        stateless=True,
    )


_Answered = Callable[[_Request, Session], Mapping[str, Any] | Reply]


def _dispatched(
    request: _Request, session: Session, methods: Mapping[str, _Answered], *, stateless: bool = False
) -> Reply:
    answer = methods.get(request.method)
    if answer is None:
        text = f"Method not found: {request.method[:_LONGEST_ECHO]!r}"
        return request.error(METHOD_NOT_FOUND, text, stateless=stateless)
    result = answer(request, session)
    if isinstance(result, Reply):
        return Reply(request.id, code=result.code, message=result.message, stateless=stateless)
    about = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": _SERVER}} if stateless else {}
    return Reply(request.id, {**about, **result}, stateless=stateless)


def _initialized(request: _Request, session: Session) -> Mapping[str, Any] | Reply:
    asked = request.params.get("protocolVersion")
    if not isinstance(asked, str):
        return request.error(INVALID_PARAMS, "`protocolVersion` must be a string")
    agreed = asked if asked in WITH_HANDSHAKE else WITH_HANDSHAKE[0]
    return {
        "protocolVersion": agreed, "capabilities": _OFFERS, "serverInfo": _SERVER,
        "instructions": tools.INSTRUCTIONS,
    }  # fmt: skip


def _discovered(request: _Request, session: Session) -> Mapping[str, Any]:
    return {
        "supportedVersions": list(SUPPORTED), "capabilities": _OFFERS, "instructions": tools.INSTRUCTIONS,
        **_KEEPS,
    }  # fmt: skip


def _listed(request: _Request, session: Session) -> Mapping[str, Any] | Reply:
    if request.params.get("cursor") is not None:
        return request.error(INVALID_PARAMS, "there is one page of tools; no cursor leads on from it")
    return {"tools": tools.definitions()}


def _listed_to_keep(request: _Request, session: Session) -> Mapping[str, Any] | Reply:
    result = _listed(request, session)
    return result if isinstance(result, Reply) else {**result, **_KEEPS}


def _called(request: _Request, session: Session) -> Mapping[str, Any] | Reply:
    name, arguments = request.params.get("name"), request.params.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, dict | None):
        return request.error(INVALID_PARAMS, "`name` must be a string and `arguments` an object")
    try:
        return tools.call(name, arguments or {}, session)
    except UnknownTool:
        return request.error(INVALID_PARAMS, f"Unknown tool: {name[:_LONGEST_ECHO]!r}")


def _pinged(request: _Request, session: Session) -> Mapping[str, Any]:
    return {}


_KEEPS: Mapping[str, Any] = {"ttlMs": _FRESH_MS, "cacheScope": "public"}
_AFTER_HANDSHAKE: Mapping[str, _Answered] = {
    "initialize": _initialized, "ping": _pinged, "tools/list": _listed, "tools/call": _called,
}  # fmt: skip
_STATELESS: Mapping[str, _Answered] = {
    "server/discover": _discovered, "tools/list": _listed_to_keep, "tools/call": _called,
}  # fmt: skip


def _meta(request: _Request) -> Message:
    meta = request.params.get("_meta")
    return meta if isinstance(meta, dict) else {}
