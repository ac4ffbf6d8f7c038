"""How untrusted text reaches a model: as JSON between tags that nothing in it can close.

Every `<`, `>` and `&` is written as a JSON escape and every line break is one, so the text of a stranger can neither
close its fence nor begin a line of its own. What no reader can see never gets there at all.
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
    """Whether a character takes no room on a page: formatting, private, filler, tag or variation selector."""
    return unicodedata.category(character) in _UNSEEN or character in _FILLERS or _is_ignorable(character)


def _is_ignorable(character: str) -> bool:
    """Variation selectors and what Unicode keeps free for their like; no Python's idea of Unicode decides this."""
    return any(first <= character <= last for first, last in _IGNORABLE)


def encode_json(value: Any) -> str:
    """Compact JSON on one line without `<`, `>` or `&`."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def size(text: str) -> int:
    """Bytes of UTF-8. No tokenizer makes more tokens than that, so a limit in bytes is one in tokens, too."""
    return len(text.encode())
