"""7 · What an answer costs and how long it takes, system by system."""

from typing import Any

from mats.domain.usage import Usage
from mats.evaluation.experiments.context import ExperimentContext, first_is_right
from mats.evaluation.systems.catalogue import VARIANTS
from mats.evaluation.systems.costs import estimate_cost
from mats.evaluation.systems.score import stage_percentiles

DATASET = "tools"


def efficiency(context: ExperimentContext) -> dict[str, Any]:
    """Tokens in and out per query, dollars per 1,000 queries, p50 and p95 of each stage.

    Without an LLM, tokens and dollars of systems that need one are estimates of `systems/costs.py`, and marked so;
    their accuracy and their latency are unknown.
    """
    return {"dataset": DATASET, "systems": {variant: _one(context, variant) for variant in VARIANTS}}


def _one(context: ExperimentContext, variant: str) -> dict[str, Any]:
    answers, dataset = context.answers(DATASET, variant), context.dataset(DATASET)
    if isinstance(answers, str):
        if "llm" not in VARIANTS[variant].needs:
            return {"not_run": answers}
        expected = estimate_cost(VARIANTS[variant], context.models.settings, len(dataset.queries))
        return {
            "match@1": None,
            **_per_query(expected.usage, len(dataset.queries)),
            "ms": {},
            "estimated": True,
            "why": answers,
        }
    return {
        "match@1": round(float(first_is_right(answers, dataset).mean()), 4),
        **_per_query(Usage.total(answer.usage for answer in answers.values()), len(answers)),
        "ms": stage_percentiles(answers),
        "estimated": False,
    }


def _per_query(usage: Usage, queries: int) -> dict[str, float | None]:
    return {
        "input_tokens": round(usage.input_tokens / queries, 1),
        "output_tokens": round(usage.output_tokens / queries, 1),
        "usd_per_1000": None if usage.usd is None else round(1_000 * usage.usd / queries, 5),
    }
