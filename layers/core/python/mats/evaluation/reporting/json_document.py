"""The report as JSON, for the console."""

import json
from collections.abc import Iterable
from typing import Any

from mats.evaluation.reporting.cells import Figure, Section, Table


def document(title: str, intro: Iterable[str], sections: Iterable[Section]) -> str:
    """The report, with figures as files beside it; text between backticks is code."""
    whole = {"title": title, "intro": list(intro), "sections": [_section(section) for section in sections]}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _section(section: Section) -> dict[str, Any]:
    return {
        "id": section.id,
        "title": section.title,
        "says": section.summary,
        "figures": [_figure(figure) for figure in section.figures],
        "tables": [_table(table) for table in section.tables],
    }


def _figure(figure: Figure) -> dict[str, str]:
    return {"id": figure.id, "caption": figure.caption, "alt": figure.alt, "src": f"{figure.id}.svg"}


def _table(table: Table) -> dict[str, Any]:
    return {
        "id": table.id,
        "caption": table.caption,
        "head": table.head,
        "rows": table.rows,
        "labels": table.labels,
        "theirs": sorted(table.paper_rows),
        "notes": table.notes,
    }
