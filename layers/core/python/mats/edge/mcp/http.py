"""MCP over streamable HTTP: one POST, one JSON answer; no sessions and no streams."""

import base64
import binascii
import json
from urllib.parse import urlsplit

from mats.edge.app import Application
from mats.edge.http import BodyTooLarge, BodyUnreadable, Request, Response
from mats.edge.mcp.protocol import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MAX_BATCH,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Envelope,
    Reply,
    replies_to,
    reply_to,
)
from mats.edge.mcp.tools import Session

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WITH_BATCHES = (None, "2025-03-26", "2024-11-05")
"""Versions by their header; clients that send none were written before there was one."""
_STATUS = {
    PARSE_ERROR: 400, INVALID_REQUEST: 400, INVALID_PARAMS: 400, HEADER_MISMATCH: 400, UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}  # fmt: skip
_ENCODED = ("=?base64?", "?=")


def respond(application: Application, request: Request) -> Response:
    """The response to one POST."""
    if not _from_here(request):
        return _refused(403, INVALID_REQUEST, "pages of other origins may not ask here")
    if not _takes_json(request.header("Accept")):
        return _refused(406, INVALID_REQUEST, "the answer is application/json; accept it")
    try:
        return _answered(request.json(), request, Session(lambda: application, request.caller))
    except BodyTooLarge as error:
        return _refused(413, INVALID_REQUEST, str(error))
    except BodyUnreadable as error:
        return _refused(400, PARSE_ERROR, str(error))


def _answered(message: object, request: Request, session: Session) -> Response:
    version = request.header("MCP-Protocol-Version")
    if isinstance(message, list):
        return _to_batch(message, version, session)
    name = _decoded(request.header("Mcp-Name"))
    reply = reply_to(message, session, Envelope(version, request.header("Mcp-Method"), name))
    if reply is None:
        return Response(202, "")
    shows_error = reply.stateless or reply.id is None
    return _json(_STATUS.get(reply.code, 200) if shows_error else 200, reply.to_json())


def _to_batch(messages: list[object], version: str | None, session: Session) -> Response:
    if version not in _WITH_BATCHES:
        return _refused(400, INVALID_REQUEST, "one message a request: this version has no batches")
    if not 0 < len(messages) <= MAX_BATCH:
        return _refused(400, INVALID_REQUEST, f"a batch holds 1 to {MAX_BATCH} messages")
    replies = replies_to(messages, session)
    return _json(200, [reply.to_json() for reply in replies]) if replies else Response(202, "")


def _from_here(request: Request) -> bool:
    """Whether no page of a stranger's sends this: a browser names its page's origin, other clients name none.

    On loopback only pages of this machine may ask, whatever name they reached it by: DNS can be rebound. API Gateway
    says which domain it answers for.
    """
    origin = request.header("Origin")
    if origin is None:
        return True
    try:
        host = urlsplit(origin).hostname
    except ValueError:
        return False
    return host == request.domain if request.domain else host in _LOOPBACK


def _takes_json(accept: str | None) -> bool:
    kinds = {part.partition(";")[0].strip().lower() for part in (accept or "*/*").split(",")}
    return not kinds.isdisjoint({"application/json", "application/*", "*/*"})


def _decoded(value: str | None) -> str | None:
    """A header's value as it was before a client made it fit for a header; None if it did not."""
    begin, end = _ENCODED
    if value is None or not (value.startswith(begin) and value.endswith(end)):
        return value
    try:
        return base64.b64decode(value[len(begin) : -len(end)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def _refused(status: int, code: int, message: str) -> Response:
    return _json(status, Reply(None, code=code, message=message).to_json())


def _json(status: int, body: object) -> Response:
    return Response(status, json.dumps(body, separators=(",", ":")), {"Content-Type": "application/json"})
