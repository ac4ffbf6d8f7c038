"""1 · The paper's main table and its extended metrics: every system on every set."""

from typing import Any

from evaluation.costs import Forecast
from evaluation.evaluate import sizes
from evaluation.experiments.lab import Lab, metrics
from evaluation.variants import VARIANTS


def main_table(lab: Lab) -> dict[str, Any]:
    """Every measure of every variant on every set; a variant whose model is missing says so."""
    return {"k": lab.models.settings.k, "sets": {name: _one(lab, name) for name in lab.sets}}


def spends(lab: Lab) -> list[Forecast]:
    """What the models of this table, and of those that read its answers, will take."""
    return [one for name in lab.sets for one in lab.forecasts(lab.bench(name), name)]


def _one(lab: Lab, name: str) -> dict[str, Any]:
    dataset = lab.dataset(name)
    systems: dict[str, Any] = {}
    for variant in VARIANTS:
        answers = lab.answers(name, variant)
        if isinstance(answers, str):
            systems[variant] = {"not_run": answers}
            continue
        failed = sum(bool(answer.failed) for answer in answers.values())
        systems[variant] = {"metrics": metrics(answers, dataset), "failed": failed}
    return {**sizes(dataset), "systems": systems}
