"""The report as Markdown."""

import re
from collections.abc import Iterable

from mats.evaluation.reporting.cells import Figure, Section, Table

_SPECIAL = re.compile(r"([\\`*_{}<>#|~&]|\[(?!\d)|\](?=[(\[:]))")
"""Characters that could be markup; brackets of intervals cannot."""
_CODE = re.compile(r"`([\w.+/ -]+)`")


def document(title: str, intro: Iterable[str], sections: Iterable[Section]) -> str:
    """The report, with figures as files beside it."""
    parts = [f"# {_text(title)}", *(_text(line) for line in intro)]
    for section in sections:
        parts += [f"## {_text(section.title)}", _text(section.summary)]
        parts += [_figure(figure) for figure in section.figures]
        parts += [_table(table) for table in section.tables]
    return "\n\n".join(parts) + "\n"


def _figure(figure: Figure) -> str:
    return f"![{_text(figure.alt)}]({figure.id}.svg)\n\n*{_text(figure.caption)}*"


def _table(table: Table) -> str:
    rule = "|".join("---" if i < table.labels else "---:" for i in range(len(table.head)))
    lines = [_row(table.head), f"|{rule}|"]
    for i, row in enumerate(table.rows):
        cells = [_text(cell) for cell in row]
        lines.append("| " + " | ".join(f"*{cell}*" if i in table.paper_rows else cell for cell in cells) + " |")
    notes = [f"- {_text(note)}" for note in table.notes]
    return "\n\n".join(filter(None, (f"**{_text(table.caption)}**", "\n".join(lines), "\n".join(notes))))


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(_text(cell) for cell in cells) + " |"


def _text(text: str) -> str:
    """Escaped text on one line; text between backticks is code."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(f"`{part}`" if i % 2 else _SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))
