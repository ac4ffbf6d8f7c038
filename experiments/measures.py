"""Measures of an arm's answers, each as entries of its cell of results."""

from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np

from experiments.experiment import Asked
from mats.domain.prompts.usage import Usage
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import Values, estimate, mcnemar, per_query
from mats.evaluation.systems.base import Answers, SystemAnswer, run_of
from mats.evaluation.systems.score import estimate_json, failures_json, metrics_json, stage_percentiles

CATEGORIES = ("retrieval miss", "another first", "several relevant", "no pick")


def ranking(asked: Asked) -> dict[str, Any]:
    """Every measure that is defined for the system, with intervals, and failures."""
    metrics = metrics_json(asked.answers, asked.dataset, asked.defined)
    return {"metrics": metrics, **failures_json(asked.answers)}


def paired(asked: Asked) -> dict[str, Any]:
    """First results gained and lost against the arm before, and the difference of every measure."""
    if asked.before is None:
        return {}
    pair = [per_query(run_of(answers), asked.dataset.queries) for answers in (asked.before, asked.answers)]
    return {
        "mcnemar": asdict(mcnemar(pair[0]["match@1"], pair[1]["match@1"])),
        "gain": {
            name: estimate_json(estimate(pair[1][name] - pair[0][name])) if name in asked.defined else None
            for name in pair[0]
        },
    }


def factors(asked: Asked) -> dict[str, Any]:
    """Recall of the candidates, accuracy of their order where there is a relevant one, and the causes of misses."""
    hits, candidates = first_is_right(asked.answers, asked.dataset), has_candidate(asked.answers, asked.dataset)
    missed = [query for query, hit in zip(asked.dataset.queries, hits, strict=True) if not hit]
    counts = Counter(category(query, asked.answers[query.id]) for query in missed)
    return {
        "match@1": _share(hits),
        "candidates": _share(candidates),
        "conditional": _share(hits[candidates > 0]),
        "misses_at_retrieval": round(counts[CATEGORIES[0]] / len(missed), 4) if missed else None,
        "categories": {name: counts[name] for name in CATEGORIES},
    }


def category(query: JudgedQuery, answer: SystemAnswer) -> str:
    """The cause of a miss, of those that the paper names and labels can tell.

    A retrieval miss has no relevant candidate (of Full-Ctx: none in the part of the registry that fits the prompt);
    without a pick, the model chose nothing; with several relevant ones, the query needs them together.
    """
    if not query.relevant.intersection(answer.retrieved):
        return CATEGORIES[0]
    if not answer.ranked:
        return CATEGORIES[3]
    return CATEGORIES[2] if len(query.relevant) > 1 else CATEGORIES[1]


def cost(asked: Asked) -> dict[str, Any]:
    """Per query: calls, tokens, dollars and times, those of the original calls where replies were cached.

    Tokens of recorded replies are estimated, and their time is not known.
    """
    answers, queries = asked.answers.values(), len(asked.answers)
    usage = Usage.total(answer.usage for answer in answers)
    return {
        "match@1": round(float(first_is_right(asked.answers, asked.dataset).mean()), 4),
        "calls": round(sum(answer.calls for answer in answers) / queries, 2),
        "input_tokens": round(usage.input_tokens / queries, 1),
        "output_tokens": round(usage.output_tokens / queries, 1),
        "usd_per_1000": None if usage.usd is None else round(1_000 * usage.usd / queries, 5),
        "ms": {} if asked.recorded else stage_percentiles(asked.answers),
        "counted": "estimated" if asked.recorded else "measured",
    }


def written(asked: Asked) -> dict[str, Any]:
    """Summaries that the writer left empty."""
    return {} if asked.empty_summaries is None else {"empty_summaries": asked.empty_summaries}


def has_candidate(answers: Answers, dataset: Dataset) -> Values:
    """For every query, whether a relevant capability is among the candidates (1 or 0)."""
    return np.array([float(not q.relevant.isdisjoint(answers[q.id].retrieved)) for q in dataset.queries])


def first_is_right(answers: Answers, dataset: Dataset) -> Values:
    """For every query, whether the first result is relevant (1 or 0)."""
    return np.array([float(not q.relevant.isdisjoint(answers[q.id].ranked[:1])) for q in dataset.queries])


def _share(values: Values) -> dict[str, float] | None:
    """The mean with its interval; None without values."""
    return estimate_json(estimate(values)) if len(values) else None
