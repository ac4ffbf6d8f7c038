"""The report as Markdown."""

import re
from collections.abc import Iterable, Sequence

from experiments.report.cells import Figure, Section, Table

_SPECIAL = re.compile(r"([\\`*_{}<>#|~&]|\[(?!\d)|\](?=[(\[:]))")
"""Characters that could be markup; brackets of intervals cannot."""
_CODE = re.compile(r"`([\w.+/ -]+)`")


def document(title: str, findings: Sequence[str], intro: Iterable[str], sections: Iterable[Section]) -> str:
    """The report; its figures are files beside it."""
    parts = [f"# {_text(title)}"]
    if findings:
        parts.append("\n".join(f"- {_text(line)}" for line in findings))
    parts += [_text(line) for line in intro]
    for section in sections:
        parts += [f"## {_text(section.title)}", _text(section.summary)]
        parts += [_figure(figure) for figure in section.figures]
        parts += [_table(table) for table in section.tables]
    return "\n\n".join(parts) + "\n"


def _figure(figure: Figure) -> str:
    return f"![{_text(figure.alt)}]({figure.id}.svg)\n\n*{_text(figure.caption)}*"


def _table(table: Table) -> str:
    rule = "|".join("---" if i < table.labels else "---:" for i in range(len(table.head)))
    rows = (_row(row, "*" if table.is_papers(row) else "") for row in table.rows)
    lines = "\n".join((_row(table.head), f"|{rule}|", *rows))
    notes = "\n".join(f"- {_text(note)}" for note in table.notes)
    return "\n\n".join(filter(None, (f"**{_text(table.caption)}**", lines, notes)))


def _row(row: tuple[str, ...], mark: str = "") -> str:
    return "| " + " | ".join(f"{mark}{_text(cell)}{mark}" for cell in row) + " |"


def _text(text: str) -> str:
    """Escaped text on one line; text between backticks is code."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(f"`{part}`" if i % 2 else _SPECIAL.sub(r"\\\1", part) for i, part in enumerate(parts))
