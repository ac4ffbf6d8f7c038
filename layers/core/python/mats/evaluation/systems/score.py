"""Score a system on a data set: measures with intervals, usage and latency."""

from dataclasses import asdict
from typing import Any

from mats.domain.usage import Usage
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import Estimate, estimate, per_query, percentiles
from mats.evaluation.systems.base import Answers, Progress, no_progress, run_of
from mats.evaluation.systems.catalogue import Variant
from mats.evaluation.systems.workbench import Workbench


def score(bench: Workbench, variant: Variant, *, progress: Progress = no_progress) -> dict[str, Any]:
    """Ask a system every query of a workbench's data set; measures, intervals, sizes, models and usage."""
    answers, models = variant.answers(bench, progress=progress), bench.models
    estimates = {name: estimate(v) for name, v in per_query(run_of(answers), bench.dataset.queries).items()}
    return {
        **dataset_json(bench.dataset),
        "variant": variant.name,
        "k": models.settings.k,
        "encoder": models.encoder.name if "encoder" in variant.needs and models.encoder else None,
        "llm": models.settings.rerank_model if "llm" in variant.needs else None,
        "prompt": variant.prompt() or None,
        "metrics": {name: round(e.mean, 4) for name, e in estimates.items()},
        "intervals_95": {name: [round(e.low, 4), round(e.high, 4)] for name, e in estimates.items()},
        "failed": sum(bool(answer.failed) for answer in answers.values()),
        "calls": sum(answer.calls for answer in answers.values()),
        "replayed": sum(answer.cached for answer in answers.values()),
        "usage": asdict(Usage.total(answer.usage for answer in answers.values())),
        "ms": stage_percentiles(answers),
    }


def dataset_json(dataset: Dataset) -> dict[str, Any]:
    return {
        "dataset": dataset.name,
        "data_sha256": dataset.digest,
        "documents": len(dataset.registrations),
        "refused": len(dataset.refused),
        "queries": len(dataset.queries),
        "unregistered_gold": len(dataset.unregistered_gold),
    }


def stage_percentiles(answers: Answers) -> dict[str, dict[str, float]]:
    """p50 and p95 of every stage, in milliseconds."""
    times: dict[str, list[float]] = {}
    for answer in answers.values():
        for stage, ms in answer.took_ms.items():
            times.setdefault(stage, []).append(ms)
    return {stage: percentiles(each, 50, 95) for stage, each in times.items()}


def metrics_json(answers: Answers, dataset: Dataset) -> dict[str, dict[str, float]]:
    return {name: estimate_json(estimate(v)) for name, v in per_query(run_of(answers), dataset.queries).items()}


def estimate_json(value: Estimate) -> dict[str, float]:
    return {name: round(number, 4) for name, number in asdict(value).items()}
