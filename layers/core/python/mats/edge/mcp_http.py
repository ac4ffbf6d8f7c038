"""MCP over streamable HTTP: one POST, one JSON answer; no sessions and no streams."""

import base64
import binascii
import json
from urllib.parse import urlsplit

from mats.edge import http
from mats.edge.mcp import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
    Envelope,
    Reply,
    replies_to,
    reply_to,
)
from mats.edge.mcp_tools import Asking

MOST_IN_A_BATCH = 16
"""Messages; each may be a search."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WITH_BATCHES = (None, "2025-03-26", "2024-11-05")
"""Versions by their header; clients that send none were written before there was one."""
_STATUS = {
    PARSE_ERROR: 400, INVALID_REQUEST: 400, INVALID_PARAMS: 400, HEADER_MISMATCH: 400, UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}  # fmt: skip
_ENCODED = ("=?base64?", "?=")


def respond(event: http.Event, asking: Asking) -> http.Response:
    """The response to one POST."""
    if not _from_here(event):
        return _refused(403, INVALID_REQUEST, "pages of other origins may not ask here")
    if not _takes_json(http.header_of(event, "Accept")):
        return _refused(406, INVALID_REQUEST, "the answer is application/json; accept it")
    try:
        return _answered(http.body_of(event), event, asking)
    except http.BodyTooLarge as error:
        return _refused(413, INVALID_REQUEST, str(error))
    except http.BodyUnreadable as error:
        return _refused(400, PARSE_ERROR, str(error))


def _answered(message: object, event: http.Event, asking: Asking) -> http.Response:
    version = http.header_of(event, "MCP-Protocol-Version")
    if isinstance(message, list):
        return _to_batch(message, version, asking)
    name = _decoded(http.header_of(event, "Mcp-Name"))
    reply = reply_to(message, asking, Envelope(version, http.header_of(event, "Mcp-Method"), name))
    if reply is None:
        return http.Response(202, "")
    shows_error = reply.stateless or reply.id is None
    return _json(_STATUS.get(reply.code, 200) if shows_error else 200, reply.to_json())


def _to_batch(messages: list[object], version: str | None, asking: Asking) -> http.Response:
    if version not in _WITH_BATCHES:
        return _refused(400, INVALID_REQUEST, "one message a request: this version has no batches")
    if not 0 < len(messages) <= MOST_IN_A_BATCH:
        return _refused(400, INVALID_REQUEST, f"a batch holds 1 to {MOST_IN_A_BATCH} messages")
    replies = replies_to(messages, asking)
    return _json(200, [reply.to_json() for reply in replies]) if replies else http.Response(202, "")


def _from_here(event: http.Event) -> bool:
    """Whether no page of a stranger's sends this: a browser names its page's origin, other clients name none.

    On loopback only pages of this machine may ask, whatever name they reached it by: DNS can be rebound. API Gateway
    says which domain it answers for.
    """
    origin = http.header_of(event, "Origin")
    if origin is None:
        return True
    domain = (event.get("requestContext") or {}).get("domainName")
    try:
        host = urlsplit(origin).hostname
    except ValueError:
        return False
    return host == domain if domain else host in _LOOPBACK


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


def _refused(status: int, code: int, message: str) -> http.Response:
    return _json(status, Reply(None, code=code, message=message).to_json())


def _json(status: int, body: object) -> http.Response:
    return http.Response(status, json.dumps(body, separators=(",", ":")), {"Content-Type": "application/json"})
