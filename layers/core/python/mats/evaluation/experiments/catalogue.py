"""The experiments by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mats.evaluation.experiments import enrichment, first_stage, operation, scale_sweep, signals, whole_systems
from mats.evaluation.experiments.context import ExperimentContext
from mats.evaluation.systems.costs import CostEstimate


class Experiment(NamedTuple):
    run: Callable[[ExperimentContext], dict[str, Any]]
    estimate_costs: Callable[[ExperimentContext], Sequence[CostEstimate]] = lambda context: ()


EXPERIMENTS: Mapping[str, Experiment] = {
    "main": Experiment(whole_systems.main_table, whole_systems.estimate_costs),
    "scale": Experiment(scale_sweep.scale_sweep, scale_sweep.estimate_costs),
    "decomposition": Experiment(whole_systems.decomposition, whole_systems.estimate_costs),
    "enrichment": Experiment(enrichment.enrichment, enrichment.estimate_costs),
    "signals": Experiment(signals.signals, signals.estimate_costs),
    "first-stage": Experiment(first_stage.first_stage),
    "field-weights": Experiment(first_stage.field_weights),
    "efficiency": Experiment(whole_systems.efficiency, whole_systems.estimate_costs),
    "kinds": Experiment(operation.kinds),
    "abstention": Experiment(operation.abstention),
}
"""In the order of the report; results are written to `experiment-NAME.json`."""


def estimate_costs(context: ExperimentContext, names: Sequence[str]) -> list[CostEstimate]:
    """The cost of these experiments; answers that several of them share are counted once."""
    if context.models.lacking({"llm"}):
        return []
    estimators = dict.fromkeys(EXPERIMENTS[name].estimate_costs for name in names)
    return [one for estimator in estimators for one in estimator(context)]
