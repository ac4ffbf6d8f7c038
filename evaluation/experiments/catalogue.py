"""The experiments by name."""

from collections.abc import Callable, Mapping
from typing import Any

from evaluation.experiments.abstention import abstention
from evaluation.experiments.decomposition import decomposition
from evaluation.experiments.efficiency import efficiency
from evaluation.experiments.enrichment import enrichment
from evaluation.experiments.first_stage import first_stage
from evaluation.experiments.kinds import kinds
from evaluation.experiments.lab import Lab
from evaluation.experiments.main_table import main_table
from evaluation.experiments.scale_sweep import scale_sweep
from evaluation.experiments.signals import signals

EXPERIMENTS: Mapping[str, Callable[[Lab], dict[str, Any]]] = {
    "main": main_table,
    "scale": scale_sweep,
    "decomposition": decomposition,
    "enrichment": enrichment,
    "signals": signals,
    "first-stage": first_stage,
    "efficiency": efficiency,
    "kinds": kinds,
    "abstention": abstention,
}
"""In the order in which they tell their story; results are kept as `experiment-NAME.json`."""
