"""The results of whole sets by the source of the queries, as the paper compares them."""

from collections.abc import Iterator

from experiments.context import ExperimentContext
from experiments.experiment import Experiment, Panel, arms
from experiments.measures import ranking
from experiments.panels import LARGE, by_source, sets
from experiments.report.cells import Sets, TableForm, share
from experiments.report.results import measured_only
from experiments.studies.main import OURS, OURS_TITAN, PLAIN_BM25

_FEWEST = 100  # Queries of a source that has a row of its own
_PAIRS = ((OURS_TITAN.label, "search-and-pick"), (OURS, PLAIN_BM25))


def _panels(context: ExperimentContext) -> Iterator[Panel]:
    for whole in sets(*LARGE)(context):
        yield from by_source(whole.parts[0], _FEWEST)


def _ahead(found: Sets) -> Iterator[str]:
    """On how many sources the first of a pair is ahead of the second."""
    for first, second in _PAIRS:
        ran = [measured_only(one["systems"]) for name, one in found.items() if "long tail" not in name]
        means = [
            [one[name]["metrics"]["match@1"]["mean"] for name in (first, second)]
            for one in ran
            if {first, second} <= one.keys()
        ]
        if means:
            yield f"`{first}` is ahead of `{second}` on {sum(a > b for a, b in means)} of {len(means)} sources."


EXPERIMENT = Experiment(
    name="sources",
    place=12,
    title="Results by source",
    about=f"Sources with at least {_FEWEST} queries, each asked over the whole registry.",
    panels=_panels,
    arms=(*arms("hybrid", "bm25", "pipeline-hybrid", "search-and-pick"), OURS_TITAN),
    measures=(ranking,),
    tables=(
        TableForm(
            id="sources-match-1", caption="Match@1, %", columns={"match@1": share("match@1")}, wide=True,
            paper="tab:bysource",
            notes=lambda found, _: _ahead(found),
        ),
    ),
)  # fmt: skip
