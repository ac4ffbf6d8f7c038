"""The whole pipeline as a system under test: the production object over a first stage, with a judge."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from mats.domain.errors import NotPermitted
from mats.domain.profile import Profile
from mats.domain.query import Query
from mats.domain.ranking import PAPER_WEIGHTS
from mats.domain.shortlist import Shortlist
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import LONGEST_QUERY, Answer, System
from mats.evaluation.systems.workbench import lost
from mats.ports import Reranker, RerankResult
from mats.usecases.discover import Discover


@dataclass
class _Listening:
    """A reranker for one query that remembers what it thought, or why it may not be asked."""

    reranker: Reranker
    results: list[RerankResult] = field(default_factory=list)
    denied: list[NotPermitted] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The reranker's own."""
        return self.reranker.name

    @property
    def prompt(self) -> str:
        """The reranker's own."""
        return self.reranker.prompt

    def rerank(self, query: str, candidates: Sequence[Profile]) -> RerankResult:
        """The reranker's own result."""
        try:
            result = self.reranker.rerank(query, candidates)
        except NotPermitted as error:
            self.denied.append(error)
            raise
        self.results.append(result)
        return result


def judging(discover: Discover, reranker: Reranker) -> System:
    """A system that answers with the whole shortlist, judged, by the paper's plain weights.

    Public data has neither trust nor type tags, so that two signals are left of four. What an operator must mend ends
    the run: thousands of answers without a judge would measure something else.
    """
    discover = replace(discover, weights=PAPER_WEIGHTS)

    def answer(query: JudgedQuery) -> Answer:
        listening = _Listening(reranker)
        pipeline = replace(discover, rerank=replace(discover.rerank, reranker=listening))
        shortlist = pipeline(Query(query=query.text[:LONGEST_QUERY]))
        if listening.denied:
            raise listening.denied[0]
        ranked = [result.candidate.profile.id for result in shortlist.ranked]
        return Answer(
            ranked=ranked,
            retrieved=ranked,
            usage=shortlist.trace.usage,
            took_ms=_took(shortlist, listening.results),
            failed=lost(shortlist, discover.retrieve.encoder, reranker),
            calls=len(listening.results),
            replayed=sum(result.replayed_ms is not None for result in listening.results),
        )

    return answer


def _took(shortlist: Shortlist, results: Sequence[RerankResult]) -> dict[str, float]:
    """Milliseconds of each stage; where a reply was replayed, those of the original call."""
    took = dict(shortlist.trace.took_ms)
    for result in results:
        if result.replayed_ms is not None and "rerank" in took:
            took["total"] += result.replayed_ms - took["rerank"]
            took["rerank"] = result.replayed_ms
    return took
