"""Opaque page tokens: the position where a page begins, bound to the request they were issued for.

They authorize nothing: each page is filtered by the audiences of its caller.
"""

import base64
import hashlib
import json
from typing import NoReturn

from mats.domain.errors import Fault, RequestInvalid

_LONGEST = 8_000
"""Characters. The token of the longest id has fewer."""


def make_token(position: str | int, request: str) -> str:
    """The token of the page that begins at a position: an id, or a number of results."""
    checksum = hashlib.sha256(json.dumps([request, position]).encode()).hexdigest()[:16]
    content = json.dumps([checksum, position], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def parse_id(token: str, request: str) -> str:
    """The last id of the page before.

    Raises:
        RequestInvalid: the token was not issued for this request.
    """
    position = _decode(token, request)
    if not isinstance(position, str):
        _reject()
    return position


def parse_offset(token: str, request: str) -> int:
    """The number of results on earlier pages. Raises as `parse_id` does."""
    position = _decode(token, request)
    if not isinstance(position, int) or position < 1:
        _reject()
    return position


def _decode(token: str, request: str) -> str | int:
    try:
        padded = token + "=" * (-len(token) % 4)
        content = base64.b64decode(padded, altchars=b"-_", validate=True) if len(token) <= _LONGEST else b""
        _, position = json.loads(content)
        str(position).encode()  # fails for lone surrogates, which JSON can carry and no index can look up
    except (ValueError, TypeError, RecursionError):
        _reject()
    if not isinstance(position, str | int) or isinstance(position, bool) or token != make_token(position, request):
        _reject()
    return position


def _reject() -> NoReturn:
    raise RequestInvalid([Fault("pageToken", "was not issued for this request; leave it out to start anew")])
