"""8 · One registry of all four kinds: accuracy by kind, and the kind of the first result."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from mats.domain.capability import Id, Kind
from mats.evaluation.data.datasets import FOUR_KINDS, Dataset
from mats.evaluation.experiments.context import ExperimentContext, select
from mats.evaluation.systems.base import Answers, ask
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.score import metrics_json
from mats.evaluation.systems.workbench import NO_TIMEOUTS, registry_of
from mats.usecases.discover import Discover


def kinds(context: ExperimentContext) -> dict[str, Any]:
    """The queries of every kind over the whole registry, without and with a kind filter."""
    sets = {kind: context.dataset(name) for kind, name in FOUR_KINDS.items()}
    with _everything(context, sets) as (discover, kind_of):
        results = {}
        for kind, dataset in sets.items():
            context.log(f"all kinds: queries for a {kind}")
            without = ask(shortlist_system(discover), dataset.queries)
            filtered = ask(shortlist_system(discover, kinds=[kind]), dataset.queries)
            results[str(kind)] = {
                "queries": len(dataset.queries),
                "without_intent": select(metrics_json(without, dataset), "match@1", "match@15"),
                "with_intent": select(metrics_json(filtered, dataset), "match@1", "match@15"),
                "first_of_kind": first_of_kind(without, kind_of),
            }
    return {"documents": len(kind_of), "kinds": results}


@contextmanager
def _everything(
    context: ExperimentContext, sets: Mapping[Kind, Dataset]
) -> Iterator[tuple[Discover, Mapping[Id, Kind]]]:
    registrations = [registration for dataset in sets.values() for registration in dataset.registrations]
    with registry_of(registrations, context.models.offline, encoder=context.models.encoder) as local:
        shipped = local.discover
        stages = replace(shipped.stages, budgets=NO_TIMEOUTS)
        discover = replace(shipped, rerank=replace(shipped.rerank, reranker=None), stages=stages)
        yield discover, {registration.id: registration.kind for registration in registrations}


def first_of_kind(answers: Answers, kind_of: Mapping[Id, Kind]) -> dict[str, float]:
    """The share of answers whose first result is of each kind; the rest is empty answers."""
    counts = Counter(kind_of[id] for answer in answers.values() for id in answer.ranked[:1])
    return {str(kind): round(counts[kind] / len(answers), 4) for kind in Kind}
