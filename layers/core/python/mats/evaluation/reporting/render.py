"""Render the results of experiments as a folder with Markdown, JSON, figures and one HTML page."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mats.domain.errors import Fault
from mats.evaluation.reporting import html_page, markdown
from mats.evaluation.reporting.cells import Figure, PaperRow, Section, Table, comma_list
from mats.evaluation.reporting.component_sections import (
    blends,
    enrichment,
    field_weights,
    first_stage,
    signals,
)
from mats.evaluation.reporting.demand_section import demand
from mats.evaluation.reporting.learning_section import learning
from mats.evaluation.reporting.length_bias_section import length_bias
from mats.evaluation.reporting.operation_sections import abstention, efficiency, kinds
from mats.evaluation.reporting.parts_section import parts
from mats.evaluation.reporting.results import Json, ResultsInvalid, paper, read_results
from mats.evaluation.reporting.style import png, style_context, svg
from mats.evaluation.reporting.system_sections import decomposition, main, paper_tables, scale

TITLE = "The paper's experiments, measured"
SECTIONS: Mapping[str, Callable[[Json, Json], Section]] = {
    "main": main,
    "scale": scale,
    "decomposition": decomposition,
    "enrichment": enrichment,
    "signals": signals,
    "blends": blends,
    "first-stage": first_stage,
    "field-weights": field_weights,
    "length-bias": length_bias,
    "parts": parts,
    "learning": learning,
    "efficiency": efficiency,
    "kinds": kinds,
    "abstention": abstention,
    "demand": demand,
}
"""By experiment, in the order of the report."""


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    intro: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(figure for section in self.sections for figure in section.figures)

    def markdown(self) -> str:
        """As Markdown; independent of the library that draws the figures."""
        return markdown.document(TITLE, self.intro, self.sections)

    def json(self) -> str:
        """As JSON for the console; text between backticks is code, and figures are files beside it."""
        whole = {"title": TITLE, "intro": self.intro, "sections": [_section_json(section) for section in self.sections]}
        return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _section_json(section: Section) -> dict[str, Any]:
    return {
        "id": section.id,
        "title": section.title,
        "says": section.summary,
        "figures": [
            {"id": figure.id, "caption": figure.caption, "alt": figure.alt, "src": f"{figure.id}.svg"}
            for figure in section.figures
        ],
        "tables": [_table_json(table) for table in section.tables],
    }


def _table_json(table: Table) -> dict[str, Any]:
    return {
        "id": table.id,
        "caption": table.caption,
        "head": table.head,
        "rows": table.rows,
        "labels": table.labels,
        "theirs": [i for i, row in enumerate(table.rows) if isinstance(row, PaperRow)],
        "notes": table.notes,
    }


def build_report(folder: Path) -> ExperimentReport:
    """The report of the results in a folder.

    Raises:
        ResultsInvalid: a results file cannot be read, or has another shape than its experiment writes.
    """
    files = {name: folder / f"experiment-{name}.json" for name in SECTIONS}
    results, known = {name: read_results(path) for name, path in files.items() if path.exists()}, paper()
    sections = tuple(_section(files[name], name, one, known) for name, one in results.items())
    return ExperimentReport(tuple(_intro(results)), (*sections, paper_tables(known)) if sections else ())


def _section(path: Path, name: str, results: Json, known: Json) -> Section:
    try:
        return SECTIONS[name](results, known)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        message = f"has another shape than `mats experiment {name}` writes: {error!r}"
        raise ResultsInvalid([Fault(str(path), message)]) from error


def _intro(results: Mapping[str, Json]) -> list[str]:
    lines = [
        "Rendered by `mats report` from the results files. Shares are in per cent; the paper's numbers are in italics "
        "and come from other data."
    ]
    missing = [name for name in SECTIONS if name not in results]
    if missing:
        lines.append(f"Not measured yet: {comma_list(missing)}.")
    names_by_origin: dict[str, list[str]] = {}
    for name, one in results.items():
        if isinstance(one.get("provenance"), Mapping):
            names_by_origin.setdefault(_origin(one["provenance"]), []).append(name)
    return [*lines, *(f"{comma_list(names)}: {origin}." for origin, names in names_by_origin.items())]


def _origin(source: Mapping[str, Any]) -> str:
    machine = source.get("machine", {})
    changed = source.get("changed_files", 0)
    return (
        f"measured at commit {source.get('commit', 'unknown')}"
        f"{f' with changed files: {changed},' if changed else ''} on {machine.get('cores', '?')} cores "
        f"({machine.get('cpu', 'unknown')}), Python {source.get('python', '?')}, seed "
        f"{source.get('bootstrap', {}).get('seed', '?')}"
    )


def write_report(report: ExperimentReport, out: Path) -> list[Path]:
    """Write a report to a folder, replacing an older one; the paths of the files."""
    out.mkdir(parents=True, exist_ok=True)
    drawings = {}
    written = [out / "report.md", out / "index.html", out / "report.json"]
    for figure in report.figures:
        with style_context():
            canvas = figure.draw()
            drawings[figure.id] = svg(canvas)
            (out / f"{figure.id}.png").write_bytes(png(canvas))
        (out / f"{figure.id}.svg").write_text(drawings[figure.id], encoding="utf-8")
        written += [out / f"{figure.id}.svg", out / f"{figure.id}.png"]
    page = html_page.document(TITLE, report.intro, report.sections, drawings)
    for path, text in zip(written, (report.markdown(), page, report.json()), strict=False):
        path.write_text(text, encoding="utf-8", errors="replace")
    return written
