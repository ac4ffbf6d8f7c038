"""The experiments in `experiments/studies`, by name, in the order of the report."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module

from experiments import studies
from experiments.experiment import Experiment

EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one
    for one in sorted(
        (
            import_module(f"{studies.__name__}.{module.name}").EXPERIMENT
            for module in pkgutil.iter_modules(studies.__path__)
        ),
        key=lambda experiment: experiment.place,
    )
}
