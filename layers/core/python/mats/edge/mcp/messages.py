"""The messages of `POST /mcp` in the OpenAPI document, which alone reads them; `protocol` checks what arrives."""

from typing import Any, Literal

from pydantic import BaseModel, Field, StrictInt, StrictStr


class _Rpc(BaseModel):
    jsonrpc: Literal["2.0"]


class McpRequest(_Rpc):
    """A request of the Model Context Protocol. Another method is answered by the error -32601."""

    id: StrictStr | StrictInt
    method: Literal["initialize", "ping", "server/discover", "tools/list", "tools/call"]
    params: dict[str, Any] = Field(
        default={}, description="As https://modelcontextprotocol.io/specification defines them for the method."
    )


class McpNotification(_Rpc, extra="forbid"):
    """A message without an answer: a notification is accepted and ignored."""

    method: str
    params: dict[str, Any] = {}


class McpResult(_Rpc, extra="forbid"):
    """The reply to a request; `result` is as the specification defines it for the method."""

    id: StrictStr | StrictInt
    result: dict[str, Any]


class McpFault(BaseModel, extra="forbid"):
    """An error of JSON-RPC."""

    code: int
    message: str
    data: dict[str, Any] = {}


class McpError(_Rpc, extra="forbid"):
    """The error of a request; `id` is null if it could not be read."""

    id: StrictStr | StrictInt | None
    error: McpFault
