"""The section about what remembered outcomes bring."""

from collections.abc import Iterator
from functools import partial
from math import sqrt

from matplotlib.figure import Figure as Canvas

from experiments.report.cells import INTERVALS, Figure, Section, Table, measures, number
from experiments.report.results import measured_only, not_run_notes
from experiments.report.style import legend_below, look_of, panels
from mats.evaluation.results import Json

_MEASURES = ("match@1", "match@15", "complete@5")
_STANDARD = 1_000
_TICKS = (0, 100, 500, 1_000, 4_000)
_SLICES = {"familiar": "known", "new": "new"}
_CHANGED = {"standard": "standard", "false": "false outcomes", "shown": "shown only"}


def learning(results: Json, paper: Json) -> Section:
    sets = measured_only(results["sets"])
    figures = (
        Figure(
            id="learning-curves",
            caption="Match@1 after a number of remembered requests.",
            alt="Two panels with one line for each data set: requests for known capabilities, and for new ones.",
            draw=partial(_curves, sets),
        ),
    )
    return Section(
        id="learning",
        title="Learning from outcomes",
        summary="The pipeline without a reranker, with past requests and what served them as its memory. `multitool` "
        "has a history of its own, and known are the scenes in it; of the other sets, half of each source's queries "
        f"are history ({results['splits']} splits, near-identical queries on one side), and known are queries for "
        "capabilities that it names. Standard: the first 1,000 past requests; "
        f"false: {100 * results['false_share']:.0f} % of them end in another result; shown: only right results that "
        f"were shown. Complete@5: all right ones among the first five. {INTERVALS}",
        tables=(_table(results["sets"]),),
        figures=figures if sets else (),
    )


def _table(sets: Json) -> Table:
    return Table(
        id="learning-sets",
        caption="After remembered requests, %",
        head=("set", "requests", "past", "queries", "match@1", "match@15", "complete@5"),
        rows=tuple(row for name, one in measured_only(sets).items() for row in _rows(name, one)),
        labels=3,
        notes=tuple(not_run_notes(list(sets.items()))),
    )


def _rows(name: str, one: Json) -> Iterator[tuple[str, ...]]:
    for slice_, shown in _SLICES.items():
        for label, measured in one["after"].items():
            row = measured[slice_]
            yield name, shown, _CHANGED.get(label, label), number(row["queries"]), *measures(row, _MEASURES)


def _after(one: Json) -> list[tuple[int, Json]]:
    """The numbers of past requests, ascending, with what was measured; a short history is the last of them."""
    counts = {int(label): measured for label, measured in one["after"].items() if label.isdigit()}
    return sorted({min(one["history"], _STANDARD): one["after"]["standard"], **counts}.items())


def _curves(sets: Json) -> Canvas:
    figure, grid = panels(1, 2, height=5.2, sharey=True)
    for panel, (slice_, title) in zip(grid, _SLICES.items(), strict=True):
        for name, look in look_of(list(sets)).items():
            points = {
                count: 100 * one[slice_]["match@1"]["mean"]
                for count, one in _after(sets[name])
                if one[slice_]["match@1"]
            }
            panel.plot(
                [sqrt(count) for count in points],
                list(points.values()),
                label=name,
                markersize=6,
                **look,
            )
        panel.set(title=f"{title} requests", xlabel="past requests (square root scale)", ylim=(0, 103))
        panel.set_xlim(-1, sqrt(_TICKS[-1]) + 1)
        panel.set_xticks([sqrt(count) for count in _TICKS], [number(count) for count in _TICKS])
        panel.minorticks_off()
        panel.grid(visible=True)
    grid[0].set_ylabel("queries, %")
    legend_below(figure, grid[0], columns=3)
    return figure
