"""5 · What each signal is worth, and what stands in for a missing judge."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from mats.domain.ranking import PAPER_WEIGHTS, Signal, Weights
from mats.evaluation.data.sample import sample
from mats.evaluation.experiments.context import Lab, first, metrics
from mats.evaluation.measures import mcnemar
from mats.evaluation.systems.base import ask
from mats.evaluation.systems.catalogue import VARIANTS
from mats.evaluation.systems.costs import Forecast, forecast
from mats.evaluation.systems.score import sizes
from mats.evaluation.systems.workbench import asking
from mats.usecases.discover import Discover

PLAIN: Weights = {signal: weight for signal, weight in PAPER_WEIGHTS.items() if signal is not Signal.LLM}
"""The paper's rule to the letter: a signal that is missing drops out, the judge's too, and nothing stands in for it."""


def signals(lab: Lab) -> dict[str, Any]:
    """Each signal left out, over the sample registry, which has trust and tags; the two rules over the judged sets.

    No public set has trust or type tags: over those, the two signals that are left are all there is.
    """
    return {"sample": _sample(lab), "sets": {name: _rules(lab, name) for name in lab.sets}}


def spends(lab: Lab) -> list[Forecast]:
    """What judging the sample's queries will take: once, however many signals are left out."""
    if lab.models.lacking({"llm"}):
        return []
    with lab.bench_of(sample()) as bench:
        return [replace(forecast(VARIANTS["pipeline-hybrid"], bench), what="sample")]


def without(weights: Weights, signal: Signal) -> Weights:
    """The weights with one signal left out; the others share its weight."""
    return {other: weight for other, weight in weights.items() if other is not signal}


def _sample(lab: Lab) -> dict[str, Any]:
    dataset = sample()
    dataset = replace(dataset, queries=[query for query in dataset.queries if query.relevant])
    lacking = lab.models.lacking({"llm"})
    with lab.bench_of(dataset) as bench:
        discover = bench.discover
        if not lacking:
            reranker = lab.models.reranker(lab.models.settings.rerank_model)
            discover = replace(discover, rerank=replace(discover.rerank, reranker=reranker))
        left_out: Mapping[str, Discover | None] = {
            "nothing": discover,
            "quality": replace(discover, weights=without(PAPER_WEIGHTS, Signal.QUALITY)),
            "bm25": replace(discover, weights=without(PAPER_WEIGHTS, Signal.BM25)),
            "quality and intent": replace(
                discover, weights=without(without(PAPER_WEIGHTS, Signal.QUALITY), Signal.INTENT)
            ),
            "intent": None if lacking else replace(discover, weights=without(PAPER_WEIGHTS, Signal.INTENT)),
            "llm": None if lacking else replace(discover, rerank=replace(discover.rerank, reranker=None)),
        }
        measured = {
            name: metrics(ask(asking(system), dataset.queries), dataset) if system else {"not_run": lacking}
            for name, system in left_out.items()
        }
    return {"queries": len(dataset.queries), "without": measured}


def _rules(lab: Lab, name: str) -> dict[str, Any]:
    dataset, discover = lab.dataset(name), lab.bench(name).discover
    stand_in = lab.answers(name, "hybrid")
    if isinstance(stand_in, str):
        return {**sizes(dataset), "rules": {"stand-in": {"not_run": stand_in}}, "mcnemar": None}
    lab.tell(f"{name}: the paper's plain rule")
    plain = ask(asking(replace(discover, weights=PLAIN)), dataset.queries)
    return {
        **sizes(dataset),
        "rules": {"stand-in": metrics(stand_in, dataset), "plain": metrics(plain, dataset)},
        "mcnemar": asdict(mcnemar(first(plain, dataset), first(stand_in, dataset))),
    }
