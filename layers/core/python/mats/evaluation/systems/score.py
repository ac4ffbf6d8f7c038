"""Score a system on a data set: measures with intervals, usage and latency."""

from collections.abc import Collection
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import numpy as np

from mats.domain.prompts.usage import Usage
from mats.domain.search.verdict import Verdict
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import NAMES, Estimate, estimate, per_query
from mats.evaluation.systems.base import Answers, failure_counts, run_of, total_failure
from mats.evaluation.systems.catalogue import Variant
from mats.evaluation.systems.workbench import Workbench


def score(
    bench: Workbench, variant: Variant, answers: Answers, absent: Answers = MappingProxyType({})
) -> dict[str, Any]:
    """The measures of a system's answers to a workbench's queries, with intervals, sizes, models and usage.

    A measure is None if it is undefined for the system, as all but Match@1 are for one that picks a single result, and
    if every query failed, or there is none that something serves. `absent` are the answers to the queries that nothing
    here serves.
    """
    models = bench.models
    measures = metrics_json(answers, bench.dataset, variant.measures if answers and not total_failure(answers) else ())
    return {
        **dataset_json(bench.dataset),
        "variant": variant.name,
        "k": models.settings.k,
        "encoder": models.encoder.name if "encoder" in variant.needs and models.encoder else None,
        "llm": models.names["reranker"] if "llm" in variant.needs else None,
        "prompt": variant.prompt() or None,
        "metrics": {name: each["mean"] if each else None for name, each in measures.items()},
        "intervals_95": {name: [each["low"], each["high"]] if each else None for name, each in measures.items()},
        "verdicts": verdicts_json(bench.dataset, answers, absent),
        **failures_json(answers),
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
    return {
        stage: {f"p{n}": round(float(np.percentile(each, n)), 2) for n in (50, 95)} for stage, each in times.items()
    }


def verdicts_json(dataset: Dataset, answers: Answers, absent: Answers) -> dict[str, int]:
    """Counts of wrong verdicts: a match whose first result serves nothing, and none where something serves.

    Empty for a system that gives no verdict.
    """
    if not any(answer.verdict for answer in (*answers.values(), *absent.values())):
        return {}
    queries = {query.id: query for query in (*dataset.queries, *dataset.absent)}
    judged = [(queries[id].relevant, answer) for id, answer in {**answers, **absent}.items()]
    nones = [relevant for relevant, answer in judged if answer.verdict is Verdict.NONE]
    return {
        "false_match": sum(a.verdict is Verdict.MATCH and relevant.isdisjoint(a.ranked[:1]) for relevant, a in judged),
        "false_none": sum(map(bool, nones)),
        "absent": len(absent),
        "absent_none": sum(not relevant for relevant in nones),
    }


def failures_json(answers: Answers) -> dict[str, Any]:
    return {"failed": sum(bool(answer.failed) for answer in answers.values()), "reasons": failure_counts(answers)}


def metrics_json(
    answers: Answers, dataset: Dataset, defined: Collection[str] = NAMES
) -> dict[str, dict[str, float] | None]:
    """The measures with intervals; None for one that is not defined."""
    values = per_query(run_of(answers), dataset.queries) if defined else {}
    return {name: estimate_json(estimate(values[name])) if name in defined else None for name in NAMES}


def estimate_json(value: Estimate) -> dict[str, float]:
    return {name: round(number, 4) for name, number in asdict(value).items()}
