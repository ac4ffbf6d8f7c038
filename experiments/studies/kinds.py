"""Four kinds in one registry: what is lost without a filter by kind."""

from collections.abc import Iterator
from dataclasses import replace

from experiments.context import ExperimentContext
from experiments.data.sets import FOUR_KINDS
from experiments.experiment import Arm, Experiment, Panel, arm
from experiments.measures import paired, ranking
from experiments.report.cells import TableForm, change, share
from experiments.studies.main import OURS
from mats.domain.capability.capability import Kind
from mats.domain.search.query import Query
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import LONGEST_QUERY, RankingSystem, SystemAnswer
from mats.evaluation.systems.catalogue import Variant
from mats.evaluation.systems.workbench import Workbench


def _panels(context: ExperimentContext) -> Iterator[Panel]:
    """The queries of each kind, over one registry of all."""
    sets = {kind: context.dataset(name) for kind, name in FOUR_KINDS.items() if name in context.sets}
    whole = list({each.id: each for dataset in sets.values() for each in dataset.registrations}.values())
    for kind, dataset in sets.items():
        queries = [replace(query, id=f"{kind}:{query.id}") for query in dataset.queries]
        yield Panel(kind, (replace(dataset, registrations=whole, queries=queries),), derived="four kinds")


def _filtered(bench: Workbench) -> RankingSystem:
    kinds = {each.id: each.kind for each in bench.dataset.registrations}

    def answer(query: JudgedQuery) -> SystemAnswer:
        asked = {kinds[id] for id in query.relevant if id in kinds} or set(Kind)
        found = bench.discover.answer(Query(query=query.text[:LONGEST_QUERY], kinds=tuple(asked)))
        ids = [result.id for result in found.ranked]
        return SystemAnswer(ranked=ids, retrieved=ids, took_ms=found.trace.took_ms)

    return answer


_FILTERED = Variant(
    name="filtered", description="by the kind of the gold", needs=frozenset({"encoder"}), build=_filtered
)

EXPERIMENT = Experiment(
    name="kinds",
    place=130,
    title="Four kinds in one registry",
    about="Models, agents, tools and skills together, without an LLM, which would infer the kind. The paper reports no "
    "such registry. In per cent, with bootstrap 95 % intervals.",
    panels=_panels,
    arms=(arm(OURS), Arm(label="filtered by kind", system=_FILTERED, before=OURS)),
    measures=(ranking, paired),
    tables=(
        TableForm(
            id="kinds-shares", caption="By the kind of the query, %",
            columns={"match@1": share("match@1"), "match@15": share("match@15"), "gained / lost": change},
        ),
    ),
)  # fmt: skip
