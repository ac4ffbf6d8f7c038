"""1 · The paper's main table and its extended metrics: every system on every set."""

from typing import Any

from mats.evaluation.data.datasets import Dataset
from mats.evaluation.experiments.context import ExperimentContext
from mats.evaluation.measures import estimate, per_query
from mats.evaluation.systems.base import Answers, run_of
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
    dataset, plain = context.dataset(name), context.answers(name, "bm25")
    baseline = {} if isinstance(plain, str) else per_query(run_of(plain), dataset.queries)

    def measures(answers: Answers, dataset: Dataset) -> dict[str, Any]:
        values = per_query(run_of(answers), dataset.queries)
        return {
            "metrics": metrics_json(answers, dataset),
            "over_bm25": {name: estimate_json(estimate(values[name] - before)) for name, before in baseline.items()},
            "failed": sum(bool(answer.failed) for answer in answers.values()),
        }

    systems = {variant: context.result(name, variant, measures) for variant in VARIANTS}
    return {**dataset_json(dataset), "systems": systems}
