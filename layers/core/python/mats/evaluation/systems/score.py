"""One data set, one variant: the paper's measures with their intervals, what it cost and how long it took."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from mats.domain.usage import Usage
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.measures import estimate, per_query
from mats.evaluation.systems.base import Answers, Progress, ask, run_of, unheard
from mats.evaluation.systems.catalogue import Variant
from mats.evaluation.systems.workbench import Workbench


def evaluate(bench: Workbench, variant: Variant, *, asked: Progress = unheard) -> dict[str, Any]:
    """Ask a variant every query of a workbench's data set; measures, intervals, sizes and what was used."""
    answers = ask(
        variant.built(bench), bench.dataset.queries, at_once=bench.models.at_once(variant.needs), progress=asked
    )
    return {
        **sizes(bench.dataset),
        "variant": variant.name,
        "k": bench.settings.k,
        **bench.models.used(variant.needs),
        "prompt": variant.prompt() or None,
        **measured(answers, bench.dataset),
    }


def sizes(dataset: Dataset) -> dict[str, Any]:
    """Which data it was."""
    return {
        "dataset": dataset.name,
        "data_sha256": dataset.digest,
        "documents": len(dataset.registrations),
        "refused": len(dataset.refused),
        "queries": len(dataset.queries),
        "unregistered_gold": len(dataset.unregistered),
    }


def measured(answers: Answers, dataset: Dataset) -> dict[str, Any]:
    """Measures of a run with their intervals; tokens, dollars and milliseconds where there are any."""
    estimates = {name: estimate(v) for name, v in per_query(run_of(answers), dataset.queries).items()}
    return {
        "metrics": {name: round(e.mean, 4) for name, e in estimates.items()},
        "intervals_95": {name: [round(e.low, 4), round(e.high, 4)] for name, e in estimates.items()},
        "failed": sum(bool(answer.failed) for answer in answers.values()),
        "calls": sum(answer.calls for answer in answers.values()),
        "replayed": sum(answer.replayed for answer in answers.values()),
        "usage": asdict(Usage.total(answer.usage for answer in answers.values())),
        "ms": stages([answer.took_ms for answer in answers.values()]),
    }


def stages(times: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """p50 and p95 of every stage that was timed, in milliseconds."""
    names = dict.fromkeys(stage for took in times for stage in took)
    values = {name: [took[name] for took in times if name in took] for name in names}
    return {name: {f"p{p}": round(float(np.percentile(each, p)), 2) for p in (50, 95)} for name, each in values.items()}
