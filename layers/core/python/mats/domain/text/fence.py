"""Makes untrusted text safe to read: for models without hidden characters, for people with them spelled out.

In prompts it is JSON between tags that the text cannot close: every `<`, `>`, `&` and line break becomes a JSON escape,
so untrusted text can neither close its fence nor begin a line of its own.
"""

import json
import re
import unicodedata
from bisect import bisect_right
from functools import cache
from typing import Any

_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\x85\u2028\u2029"})
_HIDDEN = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ud800-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe-\U0010ffff"
)
"""Formatting, tags, surrogates, private use, fillers, blanks, variation selectors, noncharacters, and the planes 4 to
16, where no character is visible: independent of Python's Unicode version.
"""
_CONTROL = "\x00-\x1f\x7f-\x9f\u2028\u2029"
_IS_HIDDEN = re.compile(f"[{_HIDDEN}]")
_NOT_PLAIN = re.compile(f"[{_HIDDEN}\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]")
"""Hidden characters, and control characters other than tab and line breaks."""
_BASE = f"[^\x00-\x7f{_HIDDEN}{_CONTROL}]"
_SHAPING = re.compile(f"({_BASE}(?:\ufe0f?\u200d(?={_BASE})|[\ufe0e\ufe0f]|\u200c(?={_BASE}))|[0-9#*]\ufe0f\u20e3)")
"""A character beyond ASCII with what gives it its form: the joiners and selectors of emoji and of several scripts."""
_RUN = re.compile(f"{_SHAPING.pattern}|([{_HIDDEN}\x7f-\x9f\u2028\u2029]+)")
_RAW = re.compile(f"[{_HIDDEN}\x7f-\x9f\u2028\u2029]")  # Invisible characters that JSON need not escape
_MOST_SPELLED = 8  # Code points spelled out of a run of hidden characters: enough to see it, too few to hold a message
_BREAKS = frozenset({"Cc", "Zl", "Zp"})
_PLAIN = re.compile(r"[ !#-%'-;=?-\[\]-~]*")
"""Characters that take one byte encoded: ASCII without quotes, backslashes and the escapes above."""


def visible(text: str) -> str:
    """The text as a person would see it: nothing hidden, no direction marks, whitespace runs as one space."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept = (" " if unicodedata.category(c) in _BREAKS else c for c in without_hidden(text))
    return " ".join("".join(kept).split())


def is_hidden(character: str) -> bool:
    """True if a character is invisible: formatting, private, filler, tag or variation selector."""
    return bool(_IS_HIDDEN.match(character))


def without_hidden(text: str) -> str:
    """The text without its hidden characters; control characters stay, unlike in `remove_hidden`."""
    return text if text.isascii() else _IS_HIDDEN.sub("", text)


def find_hidden(text: str, *, allow_shaping: bool = False) -> list[int]:
    """The positions of hidden characters, from 0.

    With `allow_shaping`, without those that shape the character before them, as in emoji and Persian.
    """
    if text.isascii():
        return []
    if allow_shaping:
        text = _SHAPING.sub(lambda found: "x" * len(found[0]), text)
    return [found.start() for found in _IS_HIDDEN.finditer(text)]


def code_point(character: str) -> str:
    """`U+200B`."""
    return f"U+{ord(character):04X}"


def remove_hidden(value: Any) -> Any:
    """A JSON value whose texts and keys have no hidden and no control characters; tabs and line breaks stay."""
    match value:
        case str():
            return value if value.isascii() and value.isprintable() else _NOT_PLAIN.sub("", value)
        case list():
            return [remove_hidden(entry) for entry in value]
        case dict():
            return {remove_hidden(key): remove_hidden(entry) for key, entry in value.items()}
        case _:
            return value


def spell_out(text: str) -> str:
    """The text, or JSON, with each hidden character as `⟨U+200B⟩`, long runs shortened.

    Emoji and scripts keep the joiners and selectors that shape a visible character.
    """
    return _RUN.sub(lambda found: found[1] or _spell(found[2]), text) if _RAW.search(text) else text


def _spell(run: str) -> str:
    spelled = "".join(f"⟨{code_point(c)}⟩" for c in run[:_MOST_SPELLED])
    return spelled if len(run) <= _MOST_SPELLED else f"{spelled}⟨{len(run) - _MOST_SPELLED} more⟩"


def escape_hidden(text: str) -> str:
    """JSON text with hidden and control characters as escapes: the same value, readable in a terminal."""
    return _RAW.sub(lambda found: "\\u007f" if found[0] == "\x7f" else json.dumps(found[0])[1:-1], text)


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
    most, left = min(len(text), room), room - size("…")
    if not _PLAIN.fullmatch(text, 0, most):
        left = bisect_right(range(most + 1), left, key=lambda cut: _encoded_size(text[:cut])) - 1
    end = max(0, left)
    space = text.rfind(" ", 0, end + 1)
    cut = text[: space if space > end * 4 // 5 else end].rstrip()
    return f"{cut}…" if cut else ""


def _encoded_size(text: str) -> int:
    return size(encode_json(text)) - 2


_LOOKALIKES = {
    "a": "аАαΑɑᎪꓮ", "b": "вВьЬβΒƅᏴꓐ", "c": "сСϲϹᏟꓚ", "d": "ԁԀᎠꓓ", "e": "еЕεΕєЄ℮ᎬꓰᏋ", "f": "ꓝϜ", "g": "ɡԍԌᏀꓖ",
    "h": "һҺнНΗᎻꓧ", "i": "іІιΙɩıӏӀᎥᏆꓲ", "j": "јЈϳᎫꓙ", "k": "кКκΚᏦꓗ", "l": "Ꮮꓡ", "m": "мМΜᎷꓟ", "n": "пηΝոꓠ",
    "o": "оОοΟσօꓳ", "p": "рРρΡᏢꓑ", "q": "ԛԚ", "r": "гᴦᎡᏒꓣ", "s": "ѕЅՏᏕᏚꓢ", "t": "тТτΤᎢꓔ", "u": "υμսꓴ",
    "v": "νѵѴᏙꓦ", "w": "ѡԝԜωᎳꓪ", "x": "хХχΧꓫ", "y": "уУγΥүҮᎩᎽꓬ", "z": "ΖᏃꓜ",
}  # fmt: skip
"""Cyrillic, Greek, Armenian, Cherokee and Lisu letters that look like a Latin one."""
_LATIN = re.compile(r"(?:.+ )?LATIN (?:SMALL LETTER|CAPITAL LETTER|LETTER SMALL CAPITAL) ([A-Z])(?: WITH .+)?")
"""Unicode's name of a letter with a stroke or hook, in small capitals, or in a circle or box."""
_LATIN_BLOCKS = ((0x80, 0x2FF), (0x1D00, 0x1DBF), (0x2C60, 0x2C7F), (0xA720, 0xA7FF), (0x1F110, 0x1F189))
_AS_LATIN = {
    code: found[1].lower()
    for first, last in _LATIN_BLOCKS
    for code in range(first, last + 1)
    if (found := _LATIN.fullmatch(unicodedata.name(chr(code), "")))
} | {ord(letter): latin for latin, letters in _LOOKALIKES.items() for letter in letters}
_BEYOND_ASCII = re.compile("[^\x00-\x7f]")
_MARKS = ("Mn", "Me")  # Accents and what encloses a letter
_AS_ONE = str.maketrans("l1|0", "iiio")  # A capital I looks like l, 1 and |, and a capital O like 0


@cache
def _look(character: str) -> str:
    """The Latin letter that a decomposed character resembles, else itself; empty if it is hidden or an accent."""
    is_seen = not is_hidden(character) and unicodedata.category(character) not in _MARKS
    return _AS_LATIN.get(ord(character), character) if is_seen else ""


def skeleton(text: str) -> str:
    """The text as it looks: folded case and width, no accents or hidden characters, look-alikes as Latin letters.

    The idea is that of "skeletons" in Unicode Technical Standard #39; the table is a small one of our own.
    """
    if not text.isascii():
        text = _BEYOND_ASCII.sub(lambda found: _look(found[0]), unicodedata.normalize("NFKD", text))
    return text.casefold().translate(_AS_ONE)
