"""7 · What an answer costs and how long it takes, system by system."""

from typing import Any

from mats.domain.usage import Usage
from mats.evaluation.experiments.context import Lab, first
from mats.evaluation.systems.catalogue import VARIANTS
from mats.evaluation.systems.costs import forecast
from mats.evaluation.systems.score import stages

DATASET = "tools"


def efficiency(lab: Lab) -> dict[str, Any]:
    """Tokens in and out per query, dollars per 1,000 queries, p50 and p95 of each stage.

    Where no model can be asked, tokens and dollars of systems that need one are forecast from their real prompts, and
    marked as estimated; their accuracy and their time are not known then.
    """
    return {"dataset": DATASET, "systems": {variant: _one(lab, variant) for variant in VARIANTS}}


def _one(lab: Lab, variant: str) -> dict[str, Any]:
    answers, dataset = lab.answers(DATASET, variant), lab.dataset(DATASET)
    if isinstance(answers, str):
        if "llm" not in VARIANTS[variant].needs:
            return {"not_run": answers}
        expected = forecast(VARIANTS[variant], lab.bench(DATASET))
        return {
            "match@1": None,
            **_per_query(expected.usage, len(dataset.queries)),
            "ms": {},
            "estimated": True,
            "why": answers,
        }
    return {
        "match@1": round(float(first(answers, dataset).mean()), 4),
        **_per_query(Usage.total(answer.usage for answer in answers.values()), len(answers)),
        "ms": stages([answer.took_ms for answer in answers.values()]),
        "estimated": False,
    }


def _per_query(usage: Usage, queries: int) -> dict[str, float | None]:
    return {
        "input_tokens": round(usage.input_tokens / queries, 1),
        "output_tokens": round(usage.output_tokens / queries, 1),
        "usd_per_1000": None if usage.usd is None else round(1_000 * usage.usd / queries, 5),
    }
