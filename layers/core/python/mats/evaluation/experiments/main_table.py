"""1 · The paper's main table and its extended metrics: every system on every set."""

from typing import Any

from mats.evaluation.experiments.context import Lab, metrics, rounded
from mats.evaluation.measures import estimate, per_query
from mats.evaluation.systems.base import run_of
from mats.evaluation.systems.catalogue import VARIANTS
from mats.evaluation.systems.costs import Forecast
from mats.evaluation.systems.score import sizes


def main_table(lab: Lab) -> dict[str, Any]:
    """Every measure of every variant on every set, and what it gains over plain BM25, query by query.

    A variant whose model is missing says so.
    """
    return {"k": lab.models.settings.k, "sets": {name: _one(lab, name) for name in lab.sets}}


def spends(lab: Lab) -> list[Forecast]:
    """What the models of this table, and of those that read its answers, will take."""
    return [one for name in lab.sets for one in lab.forecasts(lab.bench(name), name)]


def _one(lab: Lab, name: str) -> dict[str, Any]:
    dataset = lab.dataset(name)
    plain = lab.answers(name, "bm25")
    baseline = {} if isinstance(plain, str) else per_query(run_of(plain), dataset.queries)
    systems: dict[str, Any] = {}
    for variant in VARIANTS:
        answers = lab.answers(name, variant)
        if isinstance(answers, str):
            systems[variant] = {"not_run": answers}
            continue
        failed = sum(bool(answer.failed) for answer in answers.values())
        values = per_query(run_of(answers), dataset.queries)
        gains = {measure: rounded(estimate(values[measure] - before)) for measure, before in baseline.items()}
        systems[variant] = {"metrics": metrics(answers, dataset), "over_bm25": gains, "failed": failed}
    return {**sizes(dataset), "systems": systems}
