"""Truncation of text to a number of bytes of JSON."""

import re

from mats.domain.fence import encode_json, size

_PLAIN = re.compile(r"[ !#-%'-;=?-\[\]-~]*")
"""Characters that take one byte encoded: ASCII without quotes, backslashes and the escapes of `fence`."""


def truncate_json(text: str, room: int) -> str:
    """The longest prefix of at most `room` bytes as an encoded JSON string, without the quotes.

    Cut at a word boundary if there is one in the last fifth; truncated text ends in an ellipsis.
    """
    if len(text) <= room and _encoded_size(text) <= room:
        return text
    low, high = 0, min(len(text), room)
    if _PLAIN.fullmatch(text, 0, high):
        low = high = max(0, room - len("…".encode()))
    while low < high:
        middle = (low + high + 1) // 2
        if _encoded_size(text[:middle]) <= room - len("…".encode()):
            low = middle
        else:
            high = middle - 1
    space = text.rfind(" ", 0, low + 1)
    cut = text[: space if space > low * 4 // 5 else low].rstrip()
    return f"{cut}…" if cut else ""


def _encoded_size(text: str) -> int:
    return size(encode_json(text)) - 2
