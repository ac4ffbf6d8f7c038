"""6, continued · Weights of the lexical fields."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from mats.domain.index_fields import FIELD_WEIGHTS
from mats.evaluation.experiments.context import ExperimentContext, select
from mats.evaluation.systems.base import ask
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.score import dataset_json, metrics_json
from mats.ports import SearchIndex

CHANGED: Mapping[str, Mapping[str, float]] = {
    "as shipped": {},
    "every field alike": dict.fromkeys(FIELD_WEIGHTS, 1.0),
    "names twice": {"name": 2.0},
    "descriptions half": {"description": 0.5},
    "parameters twice": {"parameters": 2.0},
    "parameters not at all": {"parameters": 0.0},
    "other text not at all": {"other": 0.0},
}
"""The changed weights of each row."""


@runtime_checkable
class WeightedIndex(Protocol):
    """An index whose field weights can change without reindexing."""

    def weighing(self, weights: Mapping[str, float]) -> SearchIndex:
        """The same index with other weights."""
        ...


def field_weights(context: ExperimentContext) -> dict[str, Any]:
    """The first stage with other weights on every set."""
    return {"sets": {name: _one(context, name) for name in context.sets}}


def _one(context: ExperimentContext, name: str) -> dict[str, Any]:
    dataset = context.dataset(name)
    if why := context.models.lacking({"encoder"}):
        return {**dataset_json(dataset), "not_run": why}
    discover = context.bench(name).discover
    if not isinstance(discover.retrieve.index, WeightedIndex):
        raise TypeError(f"the fields of {discover.retrieve.index.name} cannot be weighted")
    results = {}
    for label, changed in CHANGED.items():
        context.log(f"{name}: {label}")
        index = discover.retrieve.index.weighing({**FIELD_WEIGHTS, **changed})
        system = replace(discover, retrieve=replace(discover.retrieve, index=index))
        results[label] = select(
            metrics_json(ask(shortlist_system(system), dataset.queries), dataset), "match@1", "match@15"
        )
    return {**dataset_json(dataset), "settings": results}
