"""The experiments by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mats.evaluation.experiments import enrichment, main_table, scale_sweep, signals
from mats.evaluation.experiments.abstention import abstention
from mats.evaluation.experiments.context import Lab
from mats.evaluation.experiments.decomposition import decomposition
from mats.evaluation.experiments.efficiency import efficiency
from mats.evaluation.experiments.field_weights import field_weights
from mats.evaluation.experiments.first_stage import first_stage
from mats.evaluation.experiments.kinds import kinds
from mats.evaluation.systems.costs import Forecast


class Experiment(NamedTuple):
    """What is measured, and what asking models for it will take."""

    run: Callable[[Lab], dict[str, Any]]
    spends: Callable[[Lab], Sequence[Forecast]] = lambda lab: ()


EXPERIMENTS: Mapping[str, Experiment] = {
    "main": Experiment(main_table.main_table, main_table.spends),
    "scale": Experiment(scale_sweep.scale_sweep, scale_sweep.spends),
    "decomposition": Experiment(decomposition, main_table.spends),
    "enrichment": Experiment(enrichment.enrichment, enrichment.spends),
    "signals": Experiment(signals.signals, signals.spends),
    "first-stage": Experiment(first_stage),
    "field-weights": Experiment(field_weights),
    "efficiency": Experiment(efficiency, main_table.spends),
    "kinds": Experiment(kinds),
    "abstention": Experiment(abstention),
}
"""In the order in which they tell their story; results are kept as `experiment-NAME.json`."""


def expected(lab: Lab, names: Sequence[str]) -> list[Forecast]:
    """What these experiments will take; answers that several of them read are paid for once."""
    spenders = dict.fromkeys(EXPERIMENTS[name].spends for name in names)
    return [one for spends in spenders for one in spends(lab)]
