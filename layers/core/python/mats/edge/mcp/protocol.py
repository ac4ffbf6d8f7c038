"""The Model Context Protocol for a stateless server, independent of the transport.

Supported are 2026-07-28, where each request carries its version and its client, and the versions before it, which
negotiate one by `initialize`: https://modelcontextprotocol.io/specification.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mats import __version__
from mats.domain.protocols.values import mapping_at
from mats.edge.mcp import tools
from mats.edge.mcp.tools import McpSession

CURRENT = "2026-07-28"
WITH_HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions that `initialize` can negotiate, newest first."""
SUPPORTED = (CURRENT, *WITH_HANDSHAKE)


PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_SERVER = {"name": "mats", "title": "mats: capability discovery", "version": __version__}
_TOOLS_TTL_MS = 3_600_000  # How long a client may cache the list of tools, which changes with releases and once a day
_MAX_ECHO = 100

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RpcReply:
    """The reply to a request: a result, or an error with one of the codes above."""

    id: str | int | None  # None if it could not be read
    result: Message | None = None
    code: int = 0
    message: str = ""
    data: Message | None = None
    stateless: bool = False  # A reply to 2026-07-28, whose HTTP transport maps errors to statuses, too

    def to_json(self) -> dict[str, Any]:
        if self.result is not None:
            return {"jsonrpc": "2.0", "id": self.id, "result": dict(self.result)}
        error = {"code": self.code, "message": self.message, **({"data": dict(self.data)} if self.data else {})}
        return {"jsonrpc": "2.0", "id": self.id, "error": error}


@dataclass(frozen=True, slots=True)
class MirroredHeaders:
    """The version, method and tool name of a message, as its HTTP headers repeat them."""

    version: str | None
    method: str | None
    name: str | None = None


class _RpcError(Exception):
    """Makes the reply an error with one of the codes above."""

    def __init__(self, code: int, message: str, data: Message | None = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


def reply_to(message: object, session: McpSession, headers: MirroredHeaders | None = None) -> RpcReply | None:
    """The reply to a message, which is any parsed JSON; None if it is a notification, or itself a reply.

    `headers` is None where the transport has none.
    """
    if fault := _invalid_reason(message):
        return RpcReply(None, code=INVALID_REQUEST, message=fault)
    assert isinstance(message, dict)  # noqa: S101 - checked by _invalid_reason
    version = headers.version if headers else None
    if "method" not in message or ("id" not in message and version in (None, *SUPPORTED)):
        return None
    params, stateless = message.get("params", {}), False
    try:
        if "id" not in message:
            raise _unsupported_version(version)
        if not isinstance(params, dict):
            raise _RpcError(INVALID_PARAMS, "`params` must be an object")
        stateless = _VERSION in mapping_at(params, "_meta") or version not in (None, *WITH_HANDSHAKE)
        if stateless:
            result = _answer_stateless(message["method"], params, session, headers)
        else:
            result = _answer(message["method"], params, session, _METHODS_AFTER_HANDSHAKE)
    except _RpcError as error:
        return RpcReply(message.get("id"), code=error.code, message=str(error), data=error.data, stateless=stateless)
    return RpcReply(message["id"], result, stateless=stateless)


def _invalid_reason(message: object) -> str:
    """Why this is no JSON-RPC message; empty if it is one."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return 'not a JSON-RPC 2.0 message: send one object with `"jsonrpc": "2.0"` and a `method`'
    if "method" not in message and not message.keys().isdisjoint(("result", "error")):
        return ""
    if not isinstance(message.get("method"), str):
        return "a request needs a `method`"
    id = message.get("id", "")
    if not isinstance(id, str | int) or isinstance(id, bool):
        return "the `id` of a request is a string or a whole number"
    return ""


def _answer_stateless(method: str, params: Message, session: McpSession, headers: MirroredHeaders | None) -> Message:
    """The result of a request of 2026-07-28, which carries its version and client."""
    meta = mapping_at(params, "_meta")
    if missing := [key for key in (_VERSION, _CAPABILITIES) if key not in meta]:
        if headers and headers.version not in (None, *SUPPORTED):
            raise _unsupported_version(headers.version)
        raise _RpcError(INVALID_PARAMS, f"`params._meta` lacks {', '.join(missing)}")
    requested = meta[_VERSION]
    if headers and (mismatch := _mismatch(method, params, requested, headers)):
        raise _RpcError(HEADER_MISMATCH, mismatch)
    if not isinstance(requested, str):
        raise _RpcError(INVALID_PARAMS, f"{_VERSION} must be a string")
    if requested != CURRENT:
        raise _unsupported_version(requested)
    result = _answer(method, params, session, _STATELESS_METHODS)
    return {**_PREAMBLE, **(_CACHING if method in ("server/discover", "tools/list") else {}), **result}


def _mismatch(method: str, params: Message, version: object, headers: MirroredHeaders) -> str:
    """How the headers differ from the message; empty if they do not."""
    if headers.version != version:
        return "the header MCP-Protocol-Version is not the version of the request"
    if headers.method != method:
        return "the header Mcp-Method is not the method of the request"
    if method == "tools/call" and headers.name != params.get("name"):
        return "the header Mcp-Name is not the name of the tool"
    return ""


def _unsupported_version(version: object) -> _RpcError:
    requested = str(version)[:_MAX_ECHO]
    message = f"Unsupported protocol version {requested!r}; supported are {', '.join(SUPPORTED)}"
    return _RpcError(UNSUPPORTED_VERSION, message, {"supported": list(SUPPORTED), "requested": requested})


_Method = Callable[[Message, McpSession], Message]


def _answer(method: str, params: Message, session: McpSession, methods: Mapping[str, _Method]) -> Message:
    if method not in methods:
        raise _RpcError(METHOD_NOT_FOUND, f"Method not found: {method[:_MAX_ECHO]!r}")
    return methods[method](params, session)


def _initialize(params: Message, session: McpSession) -> Message:
    requested = params.get("protocolVersion")
    if not isinstance(requested, str):
        raise _RpcError(INVALID_PARAMS, "`protocolVersion` must be a string")
    agreed = requested if requested in WITH_HANDSHAKE else WITH_HANDSHAKE[0]
    return {
        "protocolVersion": agreed, "capabilities": {"tools": {}}, "serverInfo": _SERVER,
        "instructions": tools.instructions(session),
    }  # fmt: skip


def _discover_server(params: Message, session: McpSession) -> Message:
    return {
        "supportedVersions": list(SUPPORTED),
        "capabilities": {"tools": {}},
        "instructions": tools.instructions(session),
    }


def _list_tools(params: Message, session: McpSession) -> Message:
    if params.get("cursor") is not None:
        raise _RpcError(INVALID_PARAMS, "there is only one page of tools; leave out `cursor`")
    return {"tools": tools.definitions(session.tools, tools.summary(session))}


def _call_tool(params: Message, session: McpSession) -> Message:
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, dict | None):
        raise _RpcError(INVALID_PARAMS, "`name` must be a string and `arguments` an object")
    result = tools.call(name, arguments or {}, session)
    if result is None:
        there = ", ".join(session.tools)
        raise _RpcError(INVALID_PARAMS, f"Unknown tool: {name[:_MAX_ECHO]!r}; there are {there}")
    return result


_PREAMBLE: Message = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": _SERVER}}
"""Part of every result of 2026-07-28."""
_CACHING: Message = {"ttlMs": _TOOLS_TTL_MS, "cacheScope": "private"}
_METHODS_AFTER_HANDSHAKE: Mapping[str, _Method] = {
    "initialize": _initialize,
    "ping": lambda _params, _session: {},
    "tools/list": _list_tools,
    "tools/call": _call_tool,
}
_STATELESS_METHODS: Mapping[str, _Method] = {
    "server/discover": _discover_server, "tools/list": _list_tools, "tools/call": _call_tool,
}  # fmt: skip
