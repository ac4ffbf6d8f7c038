"""The experiments by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mats.evaluation.experiments import enrichment, main_table, scale_sweep, signals
from mats.evaluation.experiments.abstention import abstention
from mats.evaluation.experiments.context import ExperimentContext
from mats.evaluation.experiments.decomposition import decomposition
from mats.evaluation.experiments.efficiency import efficiency
from mats.evaluation.experiments.first_stage import field_weights, first_stage
from mats.evaluation.experiments.kinds import kinds
from mats.evaluation.systems.costs import CostEstimate


class Experiment(NamedTuple):
    run: Callable[[ExperimentContext], dict[str, Any]]
    estimate_costs: Callable[[ExperimentContext], Sequence[CostEstimate]] = lambda context: ()


EXPERIMENTS: Mapping[str, Experiment] = {
    "main": Experiment(main_table.main_table, main_table.estimate_costs),
    "scale": Experiment(scale_sweep.scale_sweep, scale_sweep.estimate_costs),
    "decomposition": Experiment(decomposition, main_table.estimate_costs),
    "enrichment": Experiment(enrichment.enrichment, enrichment.estimate_costs),
    "signals": Experiment(signals.signals, signals.estimate_costs),
    "first-stage": Experiment(first_stage),
    "field-weights": Experiment(field_weights),
    "efficiency": Experiment(efficiency, main_table.estimate_costs),
    "kinds": Experiment(kinds),
    "abstention": Experiment(abstention),
}
"""In the order of the report; results are written to `experiment-NAME.json`."""


def estimate_costs(context: ExperimentContext, names: Sequence[str]) -> list[CostEstimate]:
    """The cost of these experiments; answers that several of them share are counted once."""
    if context.models.lacking({"llm"}):
        return []
    estimators = dict.fromkeys(EXPERIMENTS[name].estimate_costs for name in names)
    return [one for estimator in estimators for one in estimator(context)]
