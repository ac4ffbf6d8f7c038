"""Render the results of experiments as a folder with Markdown, JSON, figures and one HTML page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mats.domain.errors import Fault
from mats.evaluation.reporting import html_page, json_document, markdown
from mats.evaluation.reporting.cells import Figure, Section, comma_list
from mats.evaluation.reporting.component_sections import enrichment, field_weights, first_stage, signals
from mats.evaluation.reporting.operation_sections import abstention, efficiency, kinds
from mats.evaluation.reporting.paper_tables import paper_tables
from mats.evaluation.reporting.results import EXPERIMENTS, Json, ResultsInvalid, load_results, paper
from mats.evaluation.reporting.style import png, style_context, svg
from mats.evaluation.reporting.system_sections import decomposition, main, scale

TITLE = "The paper's experiments, measured"
_SECTIONS: Mapping[str, Callable[[Json, Json], Section]] = {
    "main": main,
    "scale": scale,
    "decomposition": decomposition,
    "enrichment": enrichment,
    "signals": signals,
    "first-stage": first_stage,
    "field-weights": field_weights,
    "efficiency": efficiency,
    "kinds": kinds,
    "abstention": abstention,
}


@dataclass(frozen=True, slots=True)
class ExperimentReport:
    """A report before it is written."""

    intro: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """In the order of appearance."""
        return tuple(figure for section in self.sections for figure in section.figures)

    def markdown(self) -> str:
        """As Markdown; independent of the library that draws the figures."""
        return markdown.document(TITLE, self.intro, self.sections)

    def json(self) -> str:
        """As JSON; independent of the library that draws the figures."""
        return json_document.document(TITLE, self.intro, self.sections)


def build_report(folder: Path) -> ExperimentReport:
    """The report of the results in a folder.

    Raises:
        ResultsInvalid: a results file has another shape than its experiment writes.
    """
    results, known = load_results(folder), paper()
    sections = tuple(_section(folder, name, results[name], known) for name in EXPERIMENTS if name in results)
    return ExperimentReport(tuple(_intro(results)), (*sections, paper_tables(known)) if sections else ())


def _section(folder: Path, name: str, results: Json, known: Json) -> Section:
    try:
        return _SECTIONS[name](results, known)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        path = folder / f"experiment-{name}.json"
        raise ResultsInvalid(
            [Fault(str(path), f"has another shape than `mats experiment {name}` writes: {error!r}")]
        ) from error


def _intro(results: Mapping[str, Json]) -> list[str]:
    lines = [
        "Rendered by `mats report` from the results files. Shares are in per cent; the paper's numbers are in italics "
        "and come from other data."
    ]
    missing = [name for name in EXPERIMENTS if name not in results]
    if missing:
        lines.append(f"Not measured yet: {comma_list(missing)}.")
    lines += [f"{comma_list(names)}: {origin}." for origin, names in _origins(results).items()]
    return lines


def _origins(results: Mapping[str, Json]) -> dict[str, list[str]]:
    """The experiments by their provenance, as text."""
    origins: dict[str, list[str]] = {}
    for name, one in results.items():
        if isinstance(one.get("provenance"), Mapping):
            origins.setdefault(_origin(one["provenance"]), []).append(name)
    return origins


def _origin(source: Mapping[str, Any]) -> str:
    machine = source.get("machine", {})
    changed = source.get("changed_files", 0)
    return (
        f"measured at commit {source.get('commit', 'unknown')}"
        f"{f' with changed files: {changed},' if changed else ''} on {machine.get('cores', '?')} cores "
        f"({machine.get('cpu', 'unknown')}), Python {source.get('python', '?')}, seed "
        f"{source.get('bootstrap', {}).get('seed', '?')}"
    )


def write_report(made: ExperimentReport, out: Path) -> list[Path]:
    """Write a report to a folder, replacing an older one; the paths of the files."""
    out.mkdir(parents=True, exist_ok=True)
    drawings = {}
    written = [out / "report.md", out / "index.html", out / "report.json"]
    for figure in made.figures:
        with style_context():
            canvas = figure.draw()
            drawings[figure.id] = svg(canvas)
            (out / f"{figure.id}.png").write_bytes(png(canvas))
        (out / f"{figure.id}.svg").write_text(drawings[figure.id], encoding="utf-8")
        written += [out / f"{figure.id}.svg", out / f"{figure.id}.png"]
    whole = html_page.document(TITLE, made.intro, made.sections, drawings)
    for path, text in zip(written, (made.markdown(), whole, made.json()), strict=False):
        path.write_text(text, encoding="utf-8", errors="replace")
    return written
