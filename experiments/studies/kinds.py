"""One registry of all four kinds."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from experiments.report.cells import INTERVALS, Section, Table, measures, number
from experiments.studies.context import Experiment, ExperimentContext, match_json
from mats.domain.capability.capability import Id, Kind
from mats.evaluation.data.datasets import FOUR_KINDS
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers, ask
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.workbench import registry_of, without_timeouts


def run(context: ExperimentContext) -> dict[str, Any]:
    """Accuracy of the queries of every kind over the whole registry, without and with a kind filter."""
    sets = {kind: context.dataset(name) for kind, name in FOUR_KINDS.items()}
    everything = [registration for dataset in sets.values() for registration in dataset.registrations]
    kind_of = {registration.id: registration.kind for registration in everything}
    results = {}
    with registry_of(everything, context.models.offline, encoder=context.models.encoder) as local:
        discover = without_timeouts(local.discover)
        for kind, dataset in sets.items():
            context.log(f"all kinds: queries for a {kind}")
            unfiltered = ask(shortlist_system(discover), dataset.queries)
            filtered = ask(shortlist_system(discover, kinds=[kind]), dataset.queries)
            results[str(kind)] = {
                "queries": len(dataset.queries),
                "without_intent": match_json(unfiltered, dataset),
                "with_intent": match_json(filtered, dataset),
                "first_of_kind": first_of_kind(unfiltered, kind_of),
            }
    return {"documents": len(kind_of), "kinds": results}


def first_of_kind(answers: Answers, kind_of: Mapping[Id, Kind]) -> dict[str, float]:
    """The share of answers whose first result is of each kind; the rest is empty answers."""
    counts = Counter(kind_of[id] for answer in answers.values() for id in answer.ranked[:1])
    return {str(kind): round(counts[kind] / len(answers), 4) for kind in Kind}


def section(results: Json, paper: Json) -> Section:
    by_kind = results["kinds"]
    arms, match = ("without_intent", "with_intent"), ("match@1", "match@15")
    accuracy = Table(
        id="kinds-accuracy",
        caption="By the kind of the query, without and with a kind filter, %",
        head=("kind", "queries", "@1", "@15", "@1, filtered", "@15, filtered"),
        rows=tuple(
            (kind, number(one["queries"]), *(cell for arm in arms for cell in measures(one[arm], match)))
            for kind, one in by_kind.items()
        ),
        notes=("The paper reports no registry of several kinds.",),
    )
    columns = tuple(dict.fromkeys(kind for one in by_kind.values() for kind in one["first_of_kind"]))
    confusion = Table(
        id="kinds-confusion",
        caption="Kind of the first result (columns) by the kind of the query (rows), without a filter, %",
        head=("query", *columns),
        rows=tuple((kind, *measures(one["first_of_kind"], columns)) for kind, one in by_kind.items()),
        notes=("The rest of a row to 100 is empty answers.",),
    )
    return Section(
        id="kinds",
        title="Four kinds in one registry",
        summary=f"{results['documents']:,} models, agents, tools and skills together. {INTERVALS}",
        tables=(accuracy, confusion),
    )


EXPERIMENTS = (Experiment(name="kinds", place=130, run=run, section=section),)
