"""6, continued · What a word counts for in each lexical field."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from mats.domain.profile import FIELD_WEIGHTS
from mats.evaluation.experiments.context import Lab, metrics, some
from mats.evaluation.systems.base import ask
from mats.evaluation.systems.score import sizes
from mats.evaluation.systems.workbench import asking
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
"""What each row changes."""


@runtime_checkable
class Weighable(Protocol):
    """An index whose fields can be weighed anew without filling it anew."""

    def weighing(self, weights: Mapping[str, float]) -> SearchIndex:
        """The same index under other weights."""
        ...


def field_weights(lab: Lab) -> dict[str, Any]:
    """The first stage under other weights, on every set."""
    return {"sets": {name: _one(lab, name) for name in lab.sets}}


def _one(lab: Lab, name: str) -> dict[str, Any]:
    dataset = lab.dataset(name)
    if why := lab.models.lacking({"encoder"}):
        return {**sizes(dataset), "not_run": why}
    discover = lab.bench(name).discover
    if not isinstance(discover.retrieve.index, Weighable):
        raise TypeError(f"the fields of {discover.retrieve.index.name} cannot be weighed anew")
    measured = {}
    for label, changed in CHANGED.items():
        lab.tell(f"{name}: {label}")
        index = discover.retrieve.index.weighing({**FIELD_WEIGHTS, **changed})
        system = replace(discover, retrieve=replace(discover.retrieve, index=index))
        measured[label] = some(metrics(ask(asking(system), dataset.queries), dataset), "match@1", "match@15")
    return {**sizes(dataset), "settings": measured}
