"""Untrusted text as fields of a line in a prompt, which it can neither leave nor imitate.

Brackets of tags, separators of fields and line breaks are replaced, hidden characters removed: a text can neither close
its fence nor begin a line or a field.
"""

from mats.domain.text.fence import size, visible

SEPARATOR = " | "
"""Stands between the fields of a line."""
_BARS = "|¦ǀ׀।∣│┃❘❙❚⎪⏐｜￨︱︳丨〡ㅣᅵ‖∥║⏽⎜⎟⎢⎥⎮⎸⎹┆┇┊┋╎╏▏▕⸾⼁𝄀"
_IN_FIELDS = str.maketrans(
    {"<": "‹", "＜": "‹", "﹤": "‹", ">": "›", "＞": "›", "﹥": "›", "&": "+"} | dict.fromkeys(_BARS, "/")
)
"""Replacements in fields: bars of all scripts, because a model may take any of them for the separator."""


def field_text(text: str) -> str:
    """Visible text as a field of a line: without separators, brackets of tags and line breaks."""
    return visible(text).translate(_IN_FIELDS)


def truncate(text: str, room: int) -> str:
    """The longest prefix of whole words in at most `room` bytes of UTF-8; truncated text ends in an ellipsis.

    If whole words would fill less than half of the room, the last one is cut.
    """
    if size(text) <= room:
        return text
    room -= len("…".encode())
    cut = text.encode()[: max(0, room)].decode("utf-8", "ignore")
    space = cut.rfind(" ")
    if not text[len(cut) :].startswith(" ") and space > len(cut) // 2:
        cut = cut[:space]
    cut = cut.rstrip(" ,;:…")
    return f"{cut}…" if cut else ""
