"""Render the results of experiments as a folder with Markdown, JSON and figures."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from experiments.catalogue import EXPERIMENTS, RUNNABLE
from experiments.report import markdown
from experiments.report.cells import Figure, PaperRow, Section, Table, comma_list
from experiments.report.results import ResultsInvalid, paper, read_results
from experiments.report.style import png, style_context, svg
from mats.domain.errors import Fault
from mats.evaluation.results import RESULTS, Json

_Made = TypeVar("_Made")
TITLE = "Experiments after the paper"
KEPT = RESULTS / "report"  # The folder with the figures of decided experiments


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """`findings` are sentences that come before everything else, `intro` says how to read the rest."""

    findings: tuple[str, ...]
    intro: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        return tuple(figure for section in self.sections for figure in section.figures)

    def markdown(self) -> str:
        """As Markdown; independent of the library that draws the figures."""
        return markdown.document(TITLE, self.findings, self.intro, self.sections)

    def json(self) -> str:
        """As JSON for the console; text between backticks is code, and figures are files beside it."""
        sections = [_section_json(section) for section in self.sections]
        whole = {"title": TITLE, "findings": self.findings, "intro": self.intro, "sections": sections}
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
    files = {name: folder / f"experiment-{name}.json" for name in EXPERIMENTS}
    results, known = {name: read_results(path) for name, path in files.items() if path.exists()}, paper()
    sections = tuple(_run_reader(files[name], EXPERIMENTS[name].section, one, known) for name, one in results.items())
    findings = (_run_reader(files[name], EXPERIMENTS[name].finding, one) for name, one in results.items())
    last = (_provenance(results),) if sections else ()
    return ExperimentReport(tuple(filter(None, findings)), tuple(_intro(results)), (*sections, *last))


def _run_reader(path: Path, reader: Callable[..., _Made], *known: Json) -> _Made:
    try:
        return reader(*known)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        message = f"has another shape than `python -m experiments run` writes: {error!r}"
        raise ResultsInvalid([Fault(str(path), message)]) from error


def _intro(results: Mapping[str, Json]) -> list[str]:
    lines = [
        "Rendered by `python -m experiments report` from the results files. Shares are in per cent; the paper's "
        "numbers are in italics and come from other data."
    ]
    missing = [name for name in RUNNABLE if name not in results]
    if missing:
        lines.append(f"Not measured yet: {comma_list(missing)}.")
    return lines


def _provenance(results: Mapping[str, Json]) -> Section:
    """Where and with which code each experiment was measured."""
    sources = {name: one["provenance"] for name, one in results.items() if isinstance(one.get("provenance"), Mapping)}
    table = Table(
        id="provenance-experiments",
        caption="Code and machine of each experiment",
        head=("experiment", "commit", "changed files", "machine", "Python", "seed"),
        rows=tuple((name, *_origin(source)) for name, source in sources.items()),
        labels=2,
    )
    return Section(
        id="provenance",
        title="Provenance",
        summary="The commit that was measured, with the number of files that differed from it, and the machine.",
        tables=(table,) if sources else (),
    )


def _origin(source: Mapping[str, Any]) -> tuple[str, ...]:
    machine = source.get("machine", {})
    return (
        str(source.get("commit", "unknown")),
        str(source.get("changed_files", 0)),
        f"{machine.get('cores', '?')} cores ({machine.get('cpu', 'unknown')})",
        str(source.get("python", "?")),
        str(source.get("bootstrap", {}).get("seed", "?")),
    )


def write_report(report: ExperimentReport, out: Path) -> list[Path]:
    """Write a report to a folder, replacing an older one; the paths of the files."""
    out.mkdir(parents=True, exist_ok=True)
    written = [out / "report.md", out / "report.json"]
    for path, text in zip(written, (report.markdown(), report.json()), strict=True):
        path.write_text(text, encoding="utf-8", errors="replace")
    for figure in report.figures:
        files = [out / f"{figure.id}.svg", out / f"{figure.id}.png"]
        written += files
        if figure.draw is None:
            for file in files:
                file.write_bytes((KEPT / file.name).read_bytes())
            continue
        with style_context():
            canvas = figure.draw()
            files[0].write_text(svg(canvas), encoding="utf-8")
            files[1].write_bytes(png(canvas))
    return written
