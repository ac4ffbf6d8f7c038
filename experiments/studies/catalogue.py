"""The experiments by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from experiments.baselines.costs import CostBound
from experiments.studies import (
    blends,
    demand,
    enrichment,
    first_stage,
    learning,
    length_bias,
    operation,
    parts,
    scale_sweep,
    signals,
    whole_systems,
)
from experiments.studies.context import ExperimentContext


class Experiment(NamedTuple):
    run: Callable[[ExperimentContext], dict[str, Any]]
    bound_costs: Callable[[ExperimentContext], Sequence[CostBound]] = lambda context: ()


EXPERIMENTS: Mapping[str, Experiment] = {
    "main": Experiment(whole_systems.main_table, whole_systems.bound_costs),
    "scale": Experiment(scale_sweep.scale_sweep, scale_sweep.bound_costs),
    "decomposition": Experiment(whole_systems.decomposition, whole_systems.bound_costs),
    "enrichment": Experiment(enrichment.enrichment, enrichment.bound_costs),
    "signals": Experiment(signals.signals, signals.bound_costs),
    "blends": Experiment(blends.blends),
    "first-stage": Experiment(first_stage.first_stage),
    "field-weights": Experiment(first_stage.field_weights),
    "length-bias": Experiment(length_bias.length_bias),
    "parts": Experiment(parts.parts),
    "learning": Experiment(learning.learning),
    "efficiency": Experiment(whole_systems.efficiency, whole_systems.bound_costs),
    "kinds": Experiment(operation.kinds),
    "abstention": Experiment(operation.abstention),
    "demand": Experiment(demand.demand),
}
"""In the order of the report; results are written to `experiment-NAME.json`."""


def bound_costs(context: ExperimentContext, names: Sequence[str]) -> list[CostBound]:
    """The most that these experiments cost; answers that several of them share are counted once."""
    if context.models.lacking({"llm"}):
        return []
    bounds = dict.fromkeys(EXPERIMENTS[name].bound_costs for name in names)
    return [one for bound in bounds for one in bound(context)]
