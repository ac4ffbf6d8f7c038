"""Whole systems: the main table, the causes of misses, cost and latency; all by the same answers."""

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any

from experiments.studies.context import ExperimentContext, first_is_right, has_candidate, share_json
from experiments.variants import SYSTEMS
from mats.domain.prompts.usage import Usage
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.measures import estimate, per_query
from mats.evaluation.systems.base import Answers, SystemAnswer, run_of
from mats.evaluation.systems.score import dataset_json, estimate_json, failures_json, metrics_json, stage_percentiles

_PICKERS = frozenset({"regex", "full-ctx", "search-and-pick", "trial-and-err"})
"""Systems without a first stage."""
_EXAMPLES = 5
_COST_DATASET = "tools"


def main_table(context: ExperimentContext) -> dict[str, Any]:
    """Every measure of every system on every set, and its paired gain over plain BM25.

    A system without its model has `not_run` with the reason.
    """
    return {"k": context.models.settings.k, "sets": {name: _main_of(context, name) for name in context.sets}}


def _main_of(context: ExperimentContext, name: str) -> dict[str, Any]:
    dataset, plain = context.dataset(name), context.answers(name, "bm25")
    baseline = {} if isinstance(plain, str) else per_query(run_of(plain), dataset.queries)

    def measures(defined: Collection[str], answers: Answers, dataset: Dataset) -> dict[str, Any]:
        values = per_query(run_of(answers), dataset.queries)
        return {
            "metrics": metrics_json(answers, dataset, defined),
            "over_bm25": {
                name: estimate_json(estimate(values[name] - before)) if name in defined else None
                for name, before in baseline.items()
            },
            **failures_json(answers),
        }

    systems = {
        name_of: context.result(name, name_of, partial(measures, variant.measures))
        for name_of, variant in SYSTEMS.items()
    }
    return {**dataset_json(dataset), "systems": systems}


def decomposition(context: ExperimentContext) -> dict[str, Any]:
    """Both factors and the categories of misses; texts of real misses go to the examples."""
    sets = {}
    for name in context.sets:
        variants = [variant for variant in SYSTEMS if variant not in _PICKERS]
        systems = {
            variant: context.result(name, variant, partial(_factors, context, f"failures-{name}-{variant}"))
            for variant in variants
        }
        sets[name] = {**dataset_json(context.dataset(name)), "systems": systems}
    return {"k": context.models.settings.k, "sets": sets}


def _factors(context: ExperimentContext, examples: str, answers: Answers, dataset: Dataset) -> dict[str, Any]:
    hits, candidates = first_is_right(answers, dataset), has_candidate(answers, dataset)
    missed = [(query, answers[query.id]) for query, hit in zip(dataset.queries, hits, strict=True) if not hit]
    kinds = [category(query, answer) for query, answer in missed]
    context.write_examples(examples, _examples(dataset, missed))
    return {
        "candidates": share_json(candidates),
        "conditional": share_json(hits[candidates > 0]),
        "match@1": share_json(hits),
        "misses_at_retrieval": round(kinds.count("retrieval_miss") / len(kinds), 4) if kinds else 0.0,
        "categories": {kind: kinds.count(kind) for kind in ("retrieval_miss", "picked_another", "several_gold")},
    }


def category(query: JudgedQuery, answer: SystemAnswer) -> str:
    """The category of a miss, of those in the paper that labels can tell.

    `retrieval_miss`: no relevant candidate. `several_gold`: the query needs several capabilities, and some of them are
    candidates. `picked_another`: the relevant capability is a candidate, and another one is first.
    """
    if not query.relevant.intersection(answer.retrieved):
        return "retrieval_miss"
    return "several_gold" if len(query.relevant) > 1 else "picked_another"


def _examples(dataset: Dataset, missed: Iterable[tuple[JudgedQuery, SystemAnswer]]) -> list[dict[str, Any]]:
    """A few misses of each category, with query, relevant capabilities and first result."""
    described = {registration.id: registration.description for registration in dataset.registrations}
    examples: dict[str, list[dict[str, Any]]] = {}
    for query, answer in missed:
        kind = category(query, answer)
        row = {
            "category": kind,
            "query": query.text,
            "right": {id: described.get(id) for id in sorted(query.relevant)},
            "first": {id: described.get(id) for id in answer.ranked[:1]},
            "rank": next((rank for rank, id in enumerate(answer.ranked, start=1) if id in query.relevant), None),
        }
        examples.setdefault(kind, []).append(row)
    return [row for rows in examples.values() for row in rows[:_EXAMPLES]]


def efficiency(context: ExperimentContext) -> dict[str, Any]:
    """Calls, tokens in and out per query, dollars per 1,000 queries, p50 and p95 of each stage, as measured."""
    return {
        "dataset": _COST_DATASET,
        "systems": {variant: context.result(_COST_DATASET, variant, _cost) for variant in SYSTEMS},
    }


def _cost(answers: Answers, dataset: Dataset) -> dict[str, Any]:
    calls = sum(answer.calls for answer in answers.values())
    return {
        "match@1": round(float(first_is_right(answers, dataset).mean()), 4),
        **_per_query(calls, Usage.total(answer.usage for answer in answers.values()), len(answers)),
        "ms": stage_percentiles(answers),
    }


def _per_query(calls: int, usage: Usage, queries: int) -> dict[str, float | None]:
    return {
        "calls": round(calls / queries, 2),
        "input_tokens": round(usage.input_tokens / queries, 1),
        "output_tokens": round(usage.output_tokens / queries, 1),
        "usd_per_1000": None if usage.usd is None else round(1_000 * usage.usd / queries, 5),
    }
