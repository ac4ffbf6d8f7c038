"""Everything at once: results in, a folder with Markdown, JSON, figures and a page out. Nothing is measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mats.domain.errors import Fault
from mats.evaluation.reporting import data, markdown, page
from mats.evaluation.reporting.cells import Figure, Section, joined
from mats.evaluation.reporting.operation import abstention, efficiency, kinds
from mats.evaluation.reporting.parts import enrichment, field_weights, first_stage, signals
from mats.evaluation.reporting.results import EXPERIMENTS, Json, ResultsInvalid, paper, read
from mats.evaluation.reporting.style import png, styled, svg
from mats.evaluation.reporting.systems import decomposition, main, scale
from mats.evaluation.reporting.theirs import theirs

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
class Report:
    """A report before it is written."""

    intro: tuple[str, ...]
    sections: tuple[Section, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """In the order in which they appear."""
        return tuple(figure for section in self.sections for figure in section.figures)

    def markdown(self) -> str:
        """As Markdown, which is the same for the same results whatever draws the figures."""
        return markdown.document(TITLE, self.intro, self.sections)

    def json(self) -> str:
        """As JSON, of which the same is true."""
        return data.document(TITLE, self.intro, self.sections)


def report(folder: Path) -> Report:
    """The report of the results in a folder.

    Raises:
        ResultsInvalid: a results file is not what its experiment writes.
    """
    results, known = read(folder), paper()
    sections = tuple(_section(folder, name, results[name], known) for name in EXPERIMENTS if name in results)
    return Report(tuple(_intro(results)), (*sections, theirs(known)) if sections else ())


def _section(folder: Path, name: str, results: Json, known: Json) -> Section:
    try:
        return _SECTIONS[name](results, known)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        path = folder / f"experiment-{name}.json"
        raise ResultsInvalid([Fault(str(path), f"is not as `mats experiment {name}` writes it: {error!r}")]) from error


def _intro(results: Mapping[str, Json]) -> list[str]:
    lines = [
        "Rendered by `mats report` from results as they are; nothing is measured anew. Shares are in per cent; the "
        "paper's numbers stand beside ours in italics and come from other data."
    ]
    missing = [name for name in EXPERIMENTS if name not in results]
    if missing:
        lines.append(f"Not measured yet: {joined(missing)}.")
    lines += [f"{joined(names)}: {origin}." for origin, names in _origins(results).items()]
    return lines


def _origins(results: Mapping[str, Json]) -> dict[str, list[str]]:
    """Where numbers come from, and which."""
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


def write(made: Report, out: Path) -> list[Path]:
    """Write a report into a folder, over whatever report is there; the files written."""
    out.mkdir(parents=True, exist_ok=True)
    drawings = {}
    written = [out / "report.md", out / "index.html", out / "report.json"]
    for figure in made.figures:
        with styled():
            canvas = figure.draw()
            drawings[figure.id] = svg(canvas)
            (out / f"{figure.id}.png").write_bytes(png(canvas))
        (out / f"{figure.id}.svg").write_text(drawings[figure.id], encoding="utf-8")
        written += [out / f"{figure.id}.svg", out / f"{figure.id}.png"]
    whole = page.document(TITLE, made.intro, made.sections, drawings)
    for path, text in zip(written, (made.markdown(), whole, made.json()), strict=False):
        path.write_text(text, encoding="utf-8", errors="replace")
    return written
