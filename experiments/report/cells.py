"""Sections, tables and figures of the report, and the format of its numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure as Canvas

from experiments.report.results import not_run_reason

NONE, NOT_RUN = "–", "not run"
INTERVALS = "In per cent, with bootstrap 95 % intervals over the queries."


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
    draw: Callable[[], Canvas] | None = None  # None for a figure of a decided experiment, whose files are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    id: str
    title: str
    summary: str
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


def percent(value: Any) -> str:
    """A share in per cent, with its 95 % interval if it is an estimate; – if there is none."""
    if value is None:
        return NONE
    if not_run_reason(value):
        return NOT_RUN
    if not isinstance(value, Mapping):
        return f"{100 * value:.1f}"
    return f"{100 * value['mean']:.1f} [{100 * value['low']:.1f}, {100 * value['high']:.1f}]"


def measure(metrics: Any, name: str) -> str:
    return NOT_RUN if not_run_reason(metrics) else percent(metrics.get(name))


def number(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def gained_lost(test: Mapping[str, Any]) -> str:
    """Queries gained and lost, and the exact McNemar p-value to three places, or how small it is at most."""
    p_value = "< 0.001" if test["p"] < 0.001 else f"{test['p']:.3f}"
    return f"+{test['gained']:,} / −{test['lost']:,}, p {p_value}"
