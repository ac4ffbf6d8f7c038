"""MCP over streamable HTTP: one POST, one JSON answer; no sessions and no streams."""

import base64
import binascii
import json
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, WithJsonSchema

from mats.domain.errors import RequestInvalid
from mats.edge.app import Application
from mats.edge.http import BodyTooLarge, BodyUnreadable, Request, Response
from mats.edge.mcp import protocol
from mats.edge.mcp.protocol import INVALID_REQUEST, PARSE_ERROR, MirroredHeaders, RpcReply
from mats.edge.mcp.tools import McpSession, offered_by, parse_names
from mats.edge.schema import Parameters

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_STATUS = {
    PARSE_ERROR: 400, INVALID_REQUEST: 400, protocol.INVALID_PARAMS: 400, protocol.HEADER_MISMATCH: 400,
    protocol.UNSUPPORTED_VERSION: 400, protocol.METHOD_NOT_FOUND: 404,
}  # fmt: skip


class McpParameters(Parameters, extra="ignore"):
    """The parameters of `POST /mcp`."""

    tools: Annotated[tuple[str, ...], WithJsonSchema({"type": "string"})] = Field(
        default=(), description="Names of the tools to list, separated by commas; default: all but `search_tools`."
    )


def respond(application: Application, request: Request, parameters: McpParameters) -> Response:
    if refused := _refusal(request):
        return refused
    try:
        names = parse_names(parameters.tools) if parameters.tools else offered_by(application)
        session = McpSession(lambda: application, request.caller, names)
        name = _decode_header(request.header("Mcp-Name"))
        headers = MirroredHeaders(request.header("MCP-Protocol-Version"), request.header("Mcp-Method"), name)
        reply = protocol.reply_to(request.json(), session, headers)
    except BodyTooLarge as error:
        return _error(413, INVALID_REQUEST, str(error))
    except BodyUnreadable as error:
        return _error(400, PARSE_ERROR, str(error))
    except RequestInvalid as error:
        return _error(400, INVALID_REQUEST, str(error))
    if reply is None:
        return Response(202, "")
    shows_error = reply.stateless or reply.id is None
    return _json(_STATUS.get(reply.code, 200) if shows_error else 200, reply.to_json())


def _refusal(request: Request) -> Response | None:
    """The error for a request that a page of another origin may have sent, or whose client reads no JSON."""
    if not _is_allowed_origin(request):
        return _error(403, INVALID_REQUEST, "requests from pages of other origins are not allowed")
    media_type = (request.header("Content-Type") or "").partition(";")[0].strip().lower()
    if media_type != "application/json":  # a page of another origin has to ask before it sends this
        return _error(415, INVALID_REQUEST, "send the message as Content-Type: application/json")
    accepted = {kind.partition(";")[0].strip().lower() for kind in (request.header("Accept") or "*/*").split(",")}
    if accepted.isdisjoint(("application/json", "application/*", "*/*")):
        return _error(406, INVALID_REQUEST, "responses are application/json; accept that")
    return None


def _is_allowed_origin(request: Request) -> bool:
    """True if the request comes from no page, or from one of our own origin.

    Browsers send `Origin`, other clients do not. Behind API Gateway its host must be the domain of the API. On loopback
    it must be a loopback name, because DNS can be rebound.
    """
    origin = request.header("Origin")
    if origin is None:
        return True
    try:
        split = urlsplit(origin)
        plain = origin.lower() == f"{split.scheme}://{split.netloc}" and split.port != 0 and "@" not in split.netloc
    except ValueError:  # also a port that is no number: 127.0.0.1:80.evil.example
        return False
    return plain and (split.hostname == request.domain if request.domain else split.hostname in _LOOPBACK)


def _decode_header(value: str | None) -> str | None:
    """The value of a header that may be base64-encoded, as MCP specifies; None if that encoding is broken."""
    begin, end = "=?base64?", "?="
    if value is None or not (value.startswith(begin) and value.endswith(end)):
        return value
    try:
        return base64.b64decode(value[len(begin) : -len(end)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _error(status: int, code: int, message: str) -> Response:
    return _json(status, RpcReply(None, code=code, message=message).to_json())


def _json(status: int, body: object) -> Response:
    return Response(status, json.dumps(body, separators=(",", ":")), {"Content-Type": "application/json"})
