"""Render the results of experiments as a folder with Markdown and figures."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.catalogue import EXPERIMENTS
from experiments.report.cells import Figure, Section, Table
from experiments.report.results import paper
from experiments.report.style import style_context, svg
from mats.domain.errors import Fault, Invalid
from mats.evaluation.results import Json

TITLE = "Experiments after the paper"
_SPECIAL = re.compile(r"([\\`*_{}<>#|~&]|\[(?!\d)|\](?=[(\[:]))")
"""Characters that could be markup; brackets of intervals cannot."""
_CODE = re.compile(r"`([\w.+/ -]+)`")


class ResultsInvalid(Invalid):
    """A results file has another shape than its experiment writes."""


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
        findings = ["\n".join(f"- {_text(line)}" for line in self.findings)] if self.findings else []
        parts = [f"# {TITLE}", *findings, *map(_text, self.intro)]
        for section in self.sections:
            parts += [f"## {_text(section.title)}", _text(section.summary)]
            parts += [*map(_figure, section.figures), *map(_table, section.tables)]
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


def build_report(folder: Path) -> ExperimentReport:
    """The report of the results in a folder.

    Raises:
        ResultsInvalid: a results file cannot be read, or has another shape than its experiment writes.
    """
    known, files = paper(), {name: folder / f"experiment-{name}.json" for name in EXPERIMENTS}
    sections, findings, origins = [], [], []
    for name, path in files.items():
        if not path.exists():
            continue
        try:
            results = json.loads(path.read_text(encoding="utf-8"))
            sections.append(EXPERIMENTS[name].section(results, known))
            findings.append(EXPERIMENTS[name].finding(results["sets"]))
            origins.append((name, *_origin(results["provenance"])))
        except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
            message = f"cannot be read, or has another shape than `python -m experiments run` writes: {error!r}"
            raise ResultsInvalid([Fault(str(path), message)]) from error
    intro = [
        "Rendered by `python -m experiments report` from the results files. Shares are in per cent; the paper's "
        "numbers are in italics and come from other data. In sight: the constants and the policies of mats were chosen "
        "with the judged sets in view; of the operations, half of the requests was kept back."
    ]
    if missing := [name for name in EXPERIMENTS if not files[name].exists()]:
        intro.append(f"Not measured yet: {', '.join(missing)}.")
    last = [_provenance(origins)] if origins else []
    return ExperimentReport(tuple(filter(None, findings)), tuple(intro), (*sections, *last))


def _provenance(rows: Sequence[tuple[str, ...]]) -> Section:
    """Where and with which code each experiment was measured."""
    table = Table(
        id="provenance-experiments",
        caption="Code and machine of each experiment",
        head=("experiment", "commit", "changed files", "machine", "Python", "seed"),
        rows=tuple(rows),
        labels=2,
    )
    return Section(
        id="provenance",
        title="Provenance",
        summary="The commit that was measured, with the number of files that differed from it, and the machine.",
        tables=(table,),
    )


def _origin(source: Json) -> tuple[str, ...]:
    machine = f"{source['machine']['cores']} cores ({source['machine']['cpu']})"
    return source["commit"], str(source["changed_files"]), machine, source["python"], str(source["bootstrap"]["seed"])


def write_report(report: ExperimentReport, out: Path) -> Path:
    """Write a report to a folder, replacing an older one; the path of its page."""
    out.mkdir(parents=True, exist_ok=True)
    page = out / "report.md"
    page.write_text(report.markdown(), encoding="utf-8", errors="replace")
    for figure in report.figures:
        with style_context():
            (out / f"{figure.id}.svg").write_text(svg(figure.draw()), encoding="utf-8")
    return page
