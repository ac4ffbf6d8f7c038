"""Signals: each one left out, and the fallback for a missing reranker."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from experiments.studies.context import ExperimentContext, mcnemar_json
from mats.domain.learning.reliability import PAPER_TRUST
from mats.domain.ranking.blend import PAPER_WEIGHTS, Signal, Weights
from mats.evaluation.data.datasets import Dataset, sample
from mats.evaluation.systems.base import Answers, ask, total_failure
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.score import dataset_json, metrics_json
from mats.usecases.discover import Discover


def without(*signals: Signal) -> Weights:
    """The paper's weights without some signals; the others share their weight."""
    return {signal: weight for signal, weight in PAPER_WEIGHTS.items() if signal not in signals}


PLAIN = without(Signal.LLM)
"""The paper's rule: a missing signal drops out, the reranker's too, without a fallback."""


def signals(context: ExperimentContext) -> dict[str, Any]:
    """Each signal left out over the sample registry, which has trust and tags; both rules over the judged sets.

    Trust is added, as in the paper. No public set has trust or type tags, so that two signals are left there.
    """
    return {"sample": _sample(context), "sets": {name: _rules(context, name) for name in context.sets}}


def _sample(context: ExperimentContext) -> dict[str, Any]:
    dataset = sample()
    dataset = replace(dataset, queries=[query for query in dataset.queries if query.relevant])
    lacking = context.models.lacking({"llm"})
    with context.bench_of(dataset) as bench:
        discover = bench.discover.with_scoring(trust=PAPER_TRUST)
        if not lacking:
            reranker = context.models.reranker(context.models.settings.rerank_model)
            discover = replace(discover, rerank=replace(discover.rerank, reranker=reranker))
        left_out: Mapping[str, Discover | None] = {
            "nothing": discover,
            "quality": discover.with_scoring(weights=without(Signal.QUALITY)),
            "bm25": discover.with_scoring(weights=without(Signal.BM25)),
            "quality and intent": discover.with_scoring(weights=without(Signal.QUALITY, Signal.INTENT)),
            "intent": None if lacking else discover.with_scoring(weights=without(Signal.INTENT)),
            "llm": None if lacking else replace(discover, rerank=replace(discover.rerank, reranker=None)),
        }
        results = {
            name: _metrics(ask(shortlist_system(system), dataset.queries), dataset) if system else {"not_run": lacking}
            for name, system in left_out.items()
        }
    return {"queries": len(dataset.queries), "without": results}


def _metrics(answers: Answers, dataset: Dataset) -> dict[str, Any]:
    failure = total_failure(answers)
    return {"not_run": failure} if failure else dict(metrics_json(answers, dataset))


def _rules(context: ExperimentContext, name: str) -> dict[str, Any]:
    dataset, discover = context.dataset(name), context.bench(name).discover
    fallback = context.answers(name, "hybrid")
    if isinstance(fallback, str):
        return {**dataset_json(dataset), "rules": {"stand-in": {"not_run": fallback}}, "mcnemar": None}
    context.log(f"{name}: the paper's plain rule")
    plain = ask(shortlist_system(discover.with_scoring(weights=PLAIN)), dataset.queries)
    return {
        **dataset_json(dataset),
        "rules": {"stand-in": metrics_json(fallback, dataset), "plain": metrics_json(plain, dataset)},
        "mcnemar": mcnemar_json(plain, fallback, dataset),
    }
