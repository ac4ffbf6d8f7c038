"""The section about requests for several things."""

from collections.abc import Iterator

from experiments.report.cells import INTERVALS, Section, Table, measures, number
from experiments.report.results import not_run_notes, not_run_reason
from mats.evaluation.results import Json

_MEASURES = ("complete@5", "complete@10", "complete@15", "match@1", "match@15")


def parts(results: Json, paper: Json) -> Section:
    return Section(
        id="parts",
        title="Requests for several things",
        summary="complete@k is the share of requests with two or more right answers that have all of them among k "
        "results; match@k is of the requests with one. A request is answered as a whole, or cut at its clauses, with "
        f"candidates of the whole and of every part in turn; without a model. {INTERVALS}",
        tables=(_accuracy(results["sets"]), _times(results["sets"])),
    )


def _accuracy(sets: Json) -> Table:
    return Table(
        id="parts-accuracy",
        caption="All right answers of requests for several things, and requests for one, %",
        head=("set", "asked", "several", "cut", *_MEASURES[:3], "one", "cut", *_MEASURES[3:]),
        rows=tuple(row for name, one in sets.items() if not not_run_reason(one) for row in _rows(name, one)),
        labels=2,
        notes=tuple(not_run_notes(sets.items())),
    )


def _rows(name: str, one: Json) -> Iterator[tuple[str, ...]]:
    for asked, measured in one["systems"].items():
        shares = measures(measured, _MEASURES)
        several, single = (number(one["several"]), number(one["several_cut"])), (one["single"], one["single_cut"])
        yield name, asked, *several, *shares[:3], *map(number, single), *shares[3:]


def _times(sets: Json) -> Table:
    return Table(
        id="parts-times",
        caption="Time of an answer by its number of parts, ms",
        head=("set", "parts", "answers", "p50"),
        rows=tuple(
            (name, count, number(took["answers"]), number(took["p50"], 1))
            for name, one in sets.items()
            if not not_run_reason(one)
            for count, took in one["ms"].items()
        ),
        labels=2,
    )
