"""Untrusted values as literals of JSON, of Python and of a POSIX shell."""

import json
import re
import shlex
from typing import Any

from mats.domain.text.fence import escape_hidden, is_hidden, spell_out

_WIDTH = 88
"""Characters of a line of Python, above which a list or an object has a line for each entry."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON with hidden and control characters as escapes."""
    return escape_hidden(json.dumps(value, ensure_ascii=False, indent=indent))


def python_literal(value: Any, *, indent: int = 0) -> str:
    """A JSON value as a Python expression, broken into lines if it is long; `indent` counts the columns before it."""
    flat = _flat(value)
    if len(flat) + indent <= _WIDTH or not value or not isinstance(value, list | dict):
        return flat
    inner = indent + 4
    if isinstance(value, dict):
        opening, closing = "{}"
        entries = [f"{_flat(name)}: {python_literal(entry, indent=inner)}" for name, entry in value.items()]
    else:
        opening, closing = "[]"
        entries = [python_literal(entry, indent=inner) for entry in value]
    lines = "".join(f"{' ' * inner}{entry},\n" for entry in entries)
    return f"{opening}\n{lines}{' ' * indent}{closing}"


def _flat(value: Any) -> str:
    match value:
        case str():
            written = json.dumps(value, ensure_ascii=False)  # its escapes mean the same in Python
            return "".join(_python_escape(c) if is_hidden(c) or _CONTROL.match(c) else c for c in written)
        case dict():
            return f"{{{', '.join(f'{_flat(name)}: {_flat(entry)}' for name, entry in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_flat, value))}]"
        case _:
            return repr(value)


def _python_escape(character: str) -> str:
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def shell_word(text: str, variable: str = "") -> str:
    """One word of a shell: a text as it is, then the value of a variable.

    Hidden and control characters are spelled out: no shell has an escape for them that all others have, too.
    """
    shown = _CONTROL.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", spell_out(text))
    if not variable:
        return shlex.quote(shown)
    safe = re.fullmatch(r"[\w ./:=?&%,@+-]*", shown, re.ASCII)
    return f'"{shown}${variable}"' if safe else f'{shlex.quote(shown)}"${variable}"'
