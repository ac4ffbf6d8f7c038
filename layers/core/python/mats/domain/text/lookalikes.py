"""Text as readers see it, so that different spellings of the same look compare as equal.

The idea is that of "skeletons" in Unicode Technical Standard #39; the table is a small one of our own.
"""

import re
import unicodedata

from mats.domain.text.fence import is_hidden

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


def _latin_variants() -> dict[int, str]:
    codes = (code for first, last in _LATIN_BLOCKS for code in range(first, last + 1))
    named = ((code, _LATIN.fullmatch(unicodedata.name(chr(code), ""))) for code in codes)
    return {code: found[1].lower() for code, found in named if found}


_AS_LATIN = _latin_variants() | {ord(letter): latin for latin, letters in _LOOKALIKES.items() for letter in letters}
_MARKS = ("Mn", "Me")
"""Accents and what encloses a letter."""
_AS_ONE = str.maketrans("l1|0", "iiio")
"""A capital I looks like l, 1 and |, and a capital O like 0."""


def skeleton(text: str) -> str:
    """The text as it looks: folded case and width, no accents or hidden characters, look-alikes as Latin letters."""
    if not text.isascii():
        decomposed = (c for c in unicodedata.normalize("NFKD", text) if not is_hidden(c))
        text = "".join(c for c in decomposed if unicodedata.category(c) not in _MARKS).translate(_AS_LATIN)
    return text.casefold().translate(_AS_ONE)
