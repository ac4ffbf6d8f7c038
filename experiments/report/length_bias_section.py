"""The section about what enriched entries take from raw ones."""

from collections.abc import Iterator

from experiments.report.cells import INTERVALS, Section, Table, number, percent
from experiments.report.results import not_run_notes, not_run_reason
from mats.evaluation.results import Json

_MATCH = ("match@1", "match@15")


def length_bias(results: Json, paper: Json) -> Section:
    return Section(
        id="length-bias",
        title="Length bias of enriched entries",
        summary=f"{results['documents']:,} capabilities of `{results['dataset']}`; either half is enriched by "
        "templates, at three lengths with examples that steal from neighbours, or bare names with what their owners "
        "left out, while the other half is raw. Places are those of 15 that an entry holds on all queries it does not "
        f"answer. {INTERVALS}",
        tables=(_table(results["arms"]),),
    )


def _table(arms: Json) -> Table:
    return Table(
        id="length-bias-entries",
        caption="When half of the registry is enriched, %",
        head=(
            "enriched",
            "weights",
            "entries",
            "queries",
            "match@1",
            "change",
            "match@15",
            "change",
            "places",
            "after",
        ),
        rows=tuple(() if not_run_reason(arms) else _rows(arms)),
        labels=3,
        notes=tuple(not_run_notes([("length-bias", arms)])),
    )


def _rows(arms: Json) -> Iterator[tuple[str, ...]]:
    for arm, settings in arms.items():
        for weights, both in settings.items():
            for entries, one in both.items():
                match = (percent(one[name][when]) for name in _MATCH for when in ("before", "change"))
                places = (number(one["places"][when], 2) for when in ("before", "after"))
                yield arm, weights, entries, number(one["queries"]), *match, *places
