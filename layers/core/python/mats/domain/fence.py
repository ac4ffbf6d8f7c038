"""Escapes and truncates untrusted text for prompts: JSON between tags that the text cannot close.

Every `<`, `>`, `&` and line break becomes a JSON escape, so untrusted text can neither close its fence nor begin a line
of its own. Hidden characters are removed.
"""

import json
import re
import unicodedata
from typing import Any

_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\x85\u2028\u2029"})
_UNSEEN = frozenset({"Cf", "Cs", "Co"})
_IGNORABLE = (("\u2060", "\u206f"), ("\ufe00", "\ufe0f"), ("\ufff0", "\ufff8"), ("\U000e0000", "\U000e0fff"))
"""Variation selectors and code points reserved for them, independent of Python's Unicode version."""
_BREAKS = frozenset({"Cc", "Zl", "Zp"})
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
"""Letters and marks that Unicode lets a page leave out: fillers, a joiner, Mongolian variation selectors."""
_PLAIN = re.compile(r"[ !#-%'-;=?-\[\]-~]*")
"""Characters that take one byte encoded: ASCII without quotes, backslashes and the escapes above."""


def visible(text: str) -> str:
    """The text as a person would see it: nothing hidden, no direction marks, whitespace runs as one space."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept = (" " if unicodedata.category(c) in _BREAKS else "" if is_hidden(c) else c for c in text)
    return " ".join("".join(kept).split())


def is_hidden(character: str) -> bool:
    """Whether a character is invisible: formatting, private, filler, tag or variation selector."""
    if unicodedata.category(character) in _UNSEEN or character in _FILLERS:
        return True
    return any(first <= character <= last for first, last in _IGNORABLE)


def encode_json(value: Any) -> str:
    """Compact JSON on one line without `<`, `>` or `&`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def size(text: str) -> int:
    """Bytes of UTF-8: an upper bound of the number of tokens for any tokenizer."""
    return len(text.encode())


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
