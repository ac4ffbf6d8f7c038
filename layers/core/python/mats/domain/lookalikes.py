"""Text as readers see it, so that different spellings of the same look compare as equal.

The idea is that of "skeletons" in Unicode Technical Standard #39; the table is a small one of our own.
"""

import unicodedata

from mats.domain.fence import is_hidden

_LOOKALIKES = {
    "a": "аАαΑɑᴀ", "b": "вВьЬβΒʙƅ", "c": "сСϲϹᴄ", "d": "ԁԀɗᴅ", "e": "еЕεΕєЄᴇ", "f": "ƒꜰ", "g": "ɡɢԍԌ",
    "h": "һҺнНΗʜ", "i": "іІιΙɩıɪӏӀ", "j": "јЈϳᴊ", "k": "кКκΚᴋ", "l": "ʟ", "m": "мМΜᴍ", "n": "пηΝɴո",
    "o": "оОοΟσᴏօ", "p": "рРρΡᴘ", "q": "ԛԚ", "r": "гʀᴦ", "s": "ѕЅꜱ", "t": "тТτΤᴛ", "u": "υμᴜս",
    "v": "νѵѴᴠ", "w": "ѡԝԜωᴡ", "x": "хХχΧ", "y": "уУγΥүҮʏ", "z": "Ζᴢ",
}  # fmt: skip
"""Cyrillic, Greek, Armenian and phonetic letters that look like a Latin one."""
_AS_LATIN = {ord(letter): latin for latin, letters in _LOOKALIKES.items() for letter in letters}
_AS_ONE = str.maketrans("l1|0", "iiio")
"""A capital I looks like l, 1 and |, and a capital O like 0."""


def skeleton(text: str) -> str:
    """The text as it looks: folded case and width, no accents or hidden characters, look-alikes as Latin letters."""
    if not text.isascii():
        seen = (c for c in unicodedata.normalize("NFKD", text) if not is_hidden(c) and unicodedata.category(c) != "Mn")
        text = "".join(seen).translate(_AS_LATIN)
    return text.casefold().translate(_AS_ONE)
