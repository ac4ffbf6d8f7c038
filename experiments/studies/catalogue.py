"""The experiments by name."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

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


EXPERIMENTS: Mapping[str, Experiment] = {
    "main": Experiment(whole_systems.main_table),
    "scale": Experiment(scale_sweep.scale_sweep),
    "decomposition": Experiment(whole_systems.decomposition),
    "enrichment": Experiment(enrichment.enrichment),
    "signals": Experiment(signals.signals),
    "blends": Experiment(blends.blends),
    "first-stage": Experiment(first_stage.first_stage),
    "field-weights": Experiment(first_stage.field_weights),
    "length-bias": Experiment(length_bias.length_bias),
    "parts": Experiment(parts.parts),
    "learning": Experiment(learning.learning),
    "efficiency": Experiment(whole_systems.efficiency),
    "kinds": Experiment(operation.kinds),
    "abstention": Experiment(operation.abstention),
    "demand": Experiment(demand.demand),
}
"""In the order of the report; results are written to `experiment-NAME.json`."""
