"""Operations of public APIs, asked as people ask: the half of the requests on which nothing was made."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from experiments.context import ExperimentContext
from experiments.data.sets import operations
from experiments.experiment import Asked, Experiment, Panel, arms
from experiments.measures import ranking
from experiments.report.cells import TableForm, percent, share
from experiments.studies.main import OURS, PLAIN_BM25
from mats.domain.search.verdict import Verdict

ALL = "all"


def _panels(context: ExperimentContext) -> Iterator[Panel]:
    """The requests of each sort, each over the registry of its vendor; then all of them."""
    vendors = list(operations("kept"))
    for sort in ("exact", "paraphrase", "question", ALL):
        yield Panel(sort, tuple(
            replace(vendor, queries=[each for each in vendor.queries if sort in (ALL, each.source.partition(",")[0])])
            for vendor in vendors
        ))  # fmt: skip


def measure_false_none(asked: Asked) -> dict[str, Any]:
    """The operations of all registries, and the share of requests that are told `none` although one serves them."""
    verdicts = [answer.verdict for answer in asked.answers.values() if answer.verdict]
    return {
        "operations": sum(len(part.registrations) for part in asked.panel.parts),
        "false_none": round(verdicts.count(Verdict.NONE) / len(verdicts), 4) if verdicts else None,
    }


EXPERIMENT = Experiment(
    name="operations",
    place=140,
    title="Operations of public APIs",
    about="Requests written before any ranking was seen, over the OpenAPI documents of six vendors, a registry each; "
    "the half that was kept. Without an LLM. The paper has no such set.",
    panels=_panels,
    arms=arms(PLAIN_BM25, OURS),
    measures=(ranking, measure_false_none),
    tables=(
        TableForm(
            id="operations-shares", caption="Kept half, %",
            columns={
                "first": share("match@1"), "among five": share("match@5"), "among 15": share("match@15"),
                "`none` though one serves": lambda cell: percent(cell.get("false_none")),
            },
        ),
    ),
)  # fmt: skip
