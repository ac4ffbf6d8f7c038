"""Page tokens: where a page begins, in a form that nobody has to read, and that fits the one request it was given for.

They carry no right: what a caller may see is asked anew for each page.
"""

import base64
import binascii
import hashlib
import json
from typing import NoReturn

from mats.domain.errors import Fault, RequestInvalid

_LONGEST = 8_000
"""Characters; a token of the longest id is well below."""


def written(position: str | int, asked: str) -> str:
    """The token of the page that begins here, for what was asked."""
    content = json.dumps([_check(position, asked), position], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def place(token: str, asked: str) -> str:
    """The id behind which a page begins.

    Raises:
        RequestInvalid: this token was not given for what is asked.
    """
    position = _read(token, asked)
    if not isinstance(position, str) or not _is_text(position):
        _refuse()
    return position


def offset(token: str, asked: str) -> int:
    """The number of results before a page. Raises as `place` does."""
    position = _read(token, asked)
    if not isinstance(position, int) or position < 1:
        _refuse()
    return position


def _read(token: str, asked: str) -> str | int:
    try:
        padded = token + "=" * (-len(token) % 4)
        content = base64.b64decode(padded, altchars=b"-_", validate=True) if len(token) <= _LONGEST else b""
        check, position = json.loads(content)
    except (ValueError, TypeError, binascii.Error, RecursionError):
        _refuse()
    if not isinstance(position, str | int) or isinstance(position, bool) or check != _check(position, asked):
        _refuse()
    if token != written(position, asked):  # the same in another spelling
        _refuse()
    return position


def _is_text(position: str) -> bool:
    """Whether a place could be an id: JSON may hold halves of characters, which no index can be asked for."""
    try:
        position.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse() -> NoReturn:
    raise RequestInvalid([Fault("pageToken", "was not given for this request; leave it out to begin anew")])


def _check(position: str | int, asked: str) -> str:
    return hashlib.sha256(json.dumps([asked, position]).encode()).hexdigest()[:16]
