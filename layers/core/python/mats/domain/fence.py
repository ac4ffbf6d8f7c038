"""Escapes untrusted text for prompts: JSON between tags that the text cannot close.

Every `<`, `>`, `&` and line break becomes a JSON escape, so untrusted text can neither close its fence nor begin a line
of its own. Hidden characters are removed.
"""

import json
import unicodedata
from typing import Any

_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\x85\u2028\u2029"})
_UNSEEN = frozenset({"Cf", "Cs", "Co"})
_IGNORABLE = (("\u2060", "\u206f"), ("\ufe00", "\ufe0f"), ("\ufff0", "\ufff8"), ("\U000e0000", "\U000e0fff"))
_BREAKS = frozenset({"Cc", "Zl", "Zp"})
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
"""Letters and marks that Unicode lets a page leave out: fillers, a joiner, Mongolian variation selectors."""


def visible(text: str) -> str:
    """The text as a person would see it: nothing hidden, no direction marks, whitespace runs as one space."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept = (" " if unicodedata.category(c) in _BREAKS else "" if is_hidden(c) else c for c in text)
    return " ".join("".join(kept).split())


def is_hidden(character: str) -> bool:
    """Whether a character is invisible: formatting, private, filler, tag or variation selector."""
    return unicodedata.category(character) in _UNSEEN or character in _FILLERS or _is_ignorable(character)


def _is_ignorable(character: str) -> bool:
    """Variation selectors and code points reserved for them; independent of Python's Unicode version."""
    return any(first <= character <= last for first, last in _IGNORABLE)


def encode_json(value: Any) -> str:
    """Compact JSON on one line without `<`, `>` or `&`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def size(text: str) -> int:
    """Bytes of UTF-8: an upper bound of the number of tokens for any tokenizer."""
    return len(text.encode())
