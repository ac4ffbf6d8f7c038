"""The production pipeline as a system under test, without or with a reranker."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mats.domain.capability.capability import Kind
from mats.domain.learning.reliability import PAPER_TRUST
from mats.domain.profile.profile import Profile
from mats.domain.ranking.blend import PAPER_WEIGHTS
from mats.domain.ranking.query import Query
from mats.domain.shortlist.rank import Shortlist
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import LONGEST_QUERY, RankingSystem, SystemAnswer
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.replies import CallLog, TimedReply
from mats.ports import NO_LABELS, Labels, Reranker, RerankResult
from mats.usecases.discover import Discover


def shortlist_system(discover: Discover, *, kinds: Sequence[Kind] = ()) -> RankingSystem:
    def answer(query: JudgedQuery) -> SystemAnswer:
        return _answer(discover, Query(query=query.text[:LONGEST_QUERY], kinds=tuple(kinds)))

    return answer


BLIND = ("skills", "agents")
"""Sets of which some providers have no gold, so that a model could tell by them what cannot be right."""


@dataclass(frozen=True, slots=True)
class _BlindReranker:
    """A reranker that does not see providers."""

    reranker: Reranker

    @property
    def name(self) -> str:
        return self.reranker.name

    @property
    def prompt(self) -> str:
        return self.reranker.prompt

    def rerank(self, query: str, candidates: Sequence[Profile], labels: Labels = NO_LABELS) -> RerankResult:
        return self.reranker.rerank(query, [p.model_copy(update={"provider": ""}) for p in candidates], labels)


def reranked_system(discover: Discover, models: Models, *, blind: bool = False) -> RankingSystem:
    """A system that answers with the whole shortlist, reranked by the settings' model, by the paper's plain weights.

    Public data has neither trust nor type tags, so that two signals are left of four. NotPermitted ends the run:
    thousands of answers without a reranker would measure another system. A `blind` one does not see providers.
    """

    def answer(query: JudgedQuery) -> SystemAnswer:
        calls = CallLog()
        reranker = models.reranker(calls)
        pipeline = replace(
            discover.with_scoring(weights=PAPER_WEIGHTS, trust=PAPER_TRUST),
            rerank=replace(discover.rerank, reranker=_BlindReranker(reranker) if blind else reranker),
        )
        answered = _answer(pipeline, Query(query=query.text[:LONGEST_QUERY]), calls.made)
        if calls.denied:
            raise calls.denied
        return answered

    return answer


def _answer(discover: Discover, query: Query, calls: Sequence[TimedReply] = ()) -> SystemAnswer:
    """The whole shortlist; `calls` are those that the reranker has made when it has answered."""
    shortlist = discover(query)
    ranked = [result.id for result in shortlist.ranked]
    return SystemAnswer(
        ranked=ranked,
        retrieved=ranked,
        usage=shortlist.trace.usage,
        took_ms=_original_times(shortlist, calls),
        failed=_model_fault(shortlist, discover),
        calls=len(calls),
        cached=sum(call.cached for call in calls),
    )


def _original_times(shortlist: Shortlist, calls: Sequence[TimedReply]) -> dict[str, float]:
    """Milliseconds of each stage; for a cached reply those of the original call.

    `total` is without `queue`, the wait for other queries of the evaluation.
    """
    took = dict(shortlist.trace.took_ms)
    took["total"] -= took.get("queue", 0.0)
    for call in calls:
        if call.cached and "rerank" in took:
            took["total"] += call.took_ms - took["rerank"]
            took["rerank"] = call.took_ms
    return took


def _model_fault(shortlist: Shortlist, discover: Discover) -> str:
    """The error of a configured model that the answer lacks; empty if it lacks none."""
    models = {"neural": discover.retrieve.encoder, "llm": discover.rerank.reranker}
    lacks_one = any(model is not None and part in shortlist.degraded for part, model in models.items())
    return "; ".join(shortlist.trace.faults) or "a model is missing" if lacks_one else ""
