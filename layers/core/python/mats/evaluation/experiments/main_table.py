"""1 · The paper's main table and its extended metrics: every system on every set."""

from typing import Any

from mats.evaluation.experiments.context import ExperimentContext
from mats.evaluation.measures import estimate, per_query
from mats.evaluation.systems.base import run_of
from mats.evaluation.systems.catalogue import VARIANTS
from mats.evaluation.systems.costs import CostEstimate
from mats.evaluation.systems.score import dataset_json, estimate_json, metrics_json


def main_table(context: ExperimentContext) -> dict[str, Any]:
    """Every measure of every system on every set, and its paired gain over plain BM25.

    A system without its model has `not_run` with the reason.
    """
    return {"k": context.models.settings.k, "sets": {name: _one(context, name) for name in context.sets}}


def estimate_costs(context: ExperimentContext) -> list[CostEstimate]:
    """The cost of the LLMs of this table, and of the experiments that share its answers."""
    return [one for name in context.sets for one in context.cost_estimates(len(context.dataset(name).queries), name)]


def _one(context: ExperimentContext, name: str) -> dict[str, Any]:
    dataset = context.dataset(name)
    plain = context.answers(name, "bm25")
    baseline = {} if isinstance(plain, str) else per_query(run_of(plain), dataset.queries)
    systems: dict[str, Any] = {}
    for variant in VARIANTS:
        answers = context.answers(name, variant)
        if isinstance(answers, str):
            systems[variant] = {"not_run": answers}
            continue
        failed = sum(bool(answer.failed) for answer in answers.values())
        values = per_query(run_of(answers), dataset.queries)
        gains = {measure: estimate_json(estimate(values[measure] - before)) for measure, before in baseline.items()}
        systems[variant] = {"metrics": metrics_json(answers, dataset), "over_bm25": gains, "failed": failed}
    return {**dataset_json(dataset), "systems": systems}
