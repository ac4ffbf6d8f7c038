"""Sections, tables and figures of the report: their forms, which experiments declare, and the format of numbers."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from matplotlib.figure import Figure as Canvas

from experiments.report.results import measured_only, not_run_reason
from mats.evaluation.results import Json

NONE, NOT_RUN = "–", "not run"
MATCHED = 0.9  # Share of candidates with a recorded score below which recorded replies are no evidence
Sets: TypeAlias = Mapping[str, Any]  # The panels of an experiment's results, by label
Column: TypeAlias = Callable[[Json], str]  # The text of a cell of results


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of plain text, which is escaped at output; rows with `paper` before a label have the paper's numbers."""

    id: str
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1  # The number of leading columns with text; the rest are numbers
    notes: tuple[str, ...] = ()  # Sentences below it

    def is_papers(self, row: tuple[str, ...]) -> bool:
        return any(label.partition(":")[0] == "paper" for label in row[: self.labels])


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    id: str
    caption: str
    alt: str
    draw: Callable[[], Canvas]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    id: str
    title: str
    summary: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForm:
    """A table of an experiment: a row for each panel and system, or, if `wide`, one for each panel."""

    id: str
    caption: str
    columns: Mapping[str, Column]  # By heading; of a wide table the only one
    systems: tuple[str, ...] = ()  # Only these, in this order; empty: all
    wide: bool = False  # A column for each system
    paper: str = ""  # The label of the paper's table with the same rows
    note: str = ""
    notes: Callable[[Sets, Json], Iterable[str]] = lambda sets, paper: ()

    def table(self, sets: Sets, paper: Json) -> Table:
        named = self.systems or tuple(dict.fromkeys(name for one in sets.values() for name in one["systems"]))
        known = dict(paper["tables"].get(self.paper, {}))
        shown = self._select_shown(sets, named, known, paper) if self.wide else named
        rows: list[tuple[str, ...]] = []
        for label, one in sets.items():
            rows += self._ours(label, one, shown)
            row = paper["sets"].get(one["dataset"], {}).get("row", "")
            if row in known:
                rows += self._papers(row, known.pop(row), shown, paper)
        for row, systems in known.items():
            rows += self._papers(row, systems, shown, paper)
        head = ("set (capabilities / queries)", *shown) if self.wide else ("set", "system", "queries", *self.columns)
        origin = f"The paper's rows: {self.paper}." if self.paper else ""
        notes = tuple(filter(None, (origin, paper["remarks"].get(self.id), self.note, *self.notes(sets, paper))))
        return Table(
            id=self.id, caption=self.caption, head=head, rows=tuple(rows), labels=1 if self.wide else 2, notes=notes
        )

    def _select_shown(self, sets: Sets, named: tuple[str, ...], known: Json, paper: Json) -> tuple[str, ...]:
        """The systems that were run here or in the paper."""
        ran = {name for one in sets.values() for name in measured_only(one["systems"])}
        of_paper = {name for systems in known.values() for name in systems}
        return tuple(name for name in named if name in ran or paper["systems"].get(name, name) in of_paper)

    def _ours(self, label: str, one: Json, shown: Iterable[str]) -> Iterator[tuple[str, ...]]:
        systems = one["systems"]
        if self.wide:
            (column,) = self.columns.values()
            cells = (_wide(column, systems[name]) if name in systems else NONE for name in shown)
            yield f"{label} ({one['documents']:,} / {one['queries']:,})", *cells
            return
        for name in shown:
            if name in systems and not not_run_reason(cell := systems[name]):
                asked = cell.get("recorded", cell.get("sampled", one["queries"]))
                yield label, name, f"{asked:,}{_matched(cell)}", *(column(cell) for column in self.columns.values())

    def _papers(self, row: str, systems: Json, shown: Iterable[str], paper: Json) -> Iterator[tuple[str, ...]]:
        size = paper["sizes"].get(row)
        if self.wide:
            (column,) = self.columns.values()
            cells = (systems.get(paper["systems"].get(name, name)) for name in shown)
            label = f"paper: {row}" + (f" ({size[0]:,} / {size[1]:,})" if size else "")
            yield label, *(column(cell) if cell else NONE for cell in cells)
            return
        for name, cell in systems.items():
            texts = [column(cell) for column in self.columns.values()]
            if set(texts) != {NONE}:
                yield row, f"paper: {name}", number(size[1]) if size else NONE, *texts


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureForm:
    id: str
    caption: str
    alt: str
    draw: Callable[[Sets, Json], Canvas]
    needs: tuple[str, ...] = ()  # Of these systems one must have been run; empty: any

    def is_shown(self, sets: Sets) -> bool:
        ran = {name for one in sets.values() for name in measured_only(one["systems"])}
        return bool(ran.intersection(self.needs) if self.needs else ran)

    def figure(self, sets: Sets, paper: Json) -> Figure:
        return Figure(id=self.id, caption=self.caption, alt=self.alt, draw=lambda: self.draw(sets, paper))


def run_notes(sets: Sets) -> Iterator[str]:
    """Notes on arms that were not run, failures that count as missed, and recorded replies that match too little."""
    reasons: dict[str, dict[str, None]] = {}
    failed, weak = [], []
    for label, one in sets.items():
        for name, cell in one["systems"].items():
            if why := not_run_reason(cell):
                reasons.setdefault(why, {})[name] = None
            elif cell.get("failed"):
                failed.append(f"{name} on {label} {cell['failed']:,}")
            if cell.get("matched", 1) < MATCHED:
                weak.append(f"{name} on {label}")
    yield from (f"Not run ({', '.join(names)}): {why}" for why, names in reasons.items())
    if failed:
        yield f"Queries that failed and count as missed: {', '.join(failed)}."
    if weak:
        yield (
            f"Fewer than {100 * MATCHED:.0f} % of the candidates had a recorded score, and those without count as 0, "
            f"so these rows are no evidence: {', '.join(weak)}."
        )


def share(name: str) -> Column:
    """A measure in per cent."""
    return lambda cell: percent(cell.get("metrics", cell).get(name))


def amount(name: str, places: int = 0) -> Column:
    return lambda cell: NONE if cell.get(name) is None else f"{cell[name]:,.{places}f}"


def change(cell: Json) -> str:
    """Queries gained and lost against the arm before."""
    return gained_lost(cell["mcnemar"]) if cell.get("mcnemar") else NONE


def median(cell: Json) -> str:
    """The median time of an answer in milliseconds."""
    value = cell.get("ms", {}).get("total", {}).get("p50")
    return NONE if value is None else f"{value:,.0f}" if value >= _WHOLE else f"{value:.1f}"


_WHOLE = 100  # Milliseconds from which on no decimal is shown


def _wide(column: Column, cell: Json) -> str:
    if not_run_reason(cell):
        return NOT_RUN
    fewer = [f"{cell[kind]:,} {kind}{_matched(cell)}" for kind in ("recorded", "sampled") if kind in cell]
    return " ".join((column(cell), *(f"({text})" for text in fewer)))


def _matched(cell: Json) -> str:
    return f", {100 * cell['matched']:.0f} % matched" if "matched" in cell else ""


def percent(value: Any) -> str:
    """A share in per cent, with its 95 % interval if it is an estimate; – if there is none."""
    if value is None:
        return NONE
    if not isinstance(value, Mapping):
        return f"{100 * value:.1f}"
    return f"{100 * value['mean']:.1f} [{100 * value['low']:.1f}, {100 * value['high']:.1f}]"


def number(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def gained_lost(test: Mapping[str, Any]) -> str:
    """Queries gained and lost, and the exact McNemar p-value to three places, or how small it is at most."""
    p_value = "< 0.001" if test["p"] < 0.001 else f"{test['p']:.3f}"
    return f"+{test['gained']:,} / −{test['lost']:,}, p {p_value}"
