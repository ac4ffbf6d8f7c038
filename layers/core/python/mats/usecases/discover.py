"""Answer a query with ranked capabilities: retrieve k, rerank once, blend. Nothing is invoked."""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from mats.domain.errors import Fault, RequestInvalid
from mats.domain.explain import explain
from mats.domain.query import ANYWHERE, Filter, Query, Scope
from mats.domain.ranking import Verdict, VerdictThresholds
from mats.domain.scoring import Scoring
from mats.domain.shortlist import Shortlist, best_relevance, rank, split_by_relevance
from mats.domain.text import query_terms
from mats.domain.trace import CalibrationSource, Trace
from mats.ports import Ids, Reranker
from mats.usecases.rerank import Rerank
from mats.usecases.retrieve import Retrieve
from mats.usecases.stages import Stages, finish


@dataclass(frozen=True, slots=True, kw_only=True)
class Discover:
    """Answer queries. The signal of a failed or late stage is left out, and the answer is marked as degraded.

    The answer names models that are not configured in `without`.
    `gate` limits concurrent retrievals: with many queries on few cores, budgets start only after the wait for it.
    """

    retrieve: Retrieve
    rerank: Rerank
    stages: Stages
    scoring: Scoring
    thresholds: VerdictThresholds
    ids: Ids
    calibration: CalibrationSource | None = None
    gate: AbstractContextManager[Any] = field(default_factory=nullcontext)

    def __call__(
        self,
        query: Query,
        audiences: Collection[str] = (),
        scope: Scope = ANYWHERE,
        *,
        request_id: str = "",
    ) -> Shortlist:
        """Rank the capabilities visible to a caller in these audiences.

        Args:
            query: The request.
            audiences: Of the caller.
            scope: Restricts the search further.
            request_id: Of the request that asks, for the log of the reranker's calls.

        Raises:
            RequestInvalid: `limit` exceeds the number of candidates.
            DependencyFailed: neither side of retrieval answered.
        """
        limit, query_id = self._limit(query), self.ids()
        stages, rerank = self.stages, self.rerank.with_current()
        trace = self._trace(rerank.reranker)
        began = stages.clock.elapsed_ms()
        terms = query_terms(query.query)
        with self.gate:
            trace.took_ms["queue"] = stages.clock.elapsed_ms() - began
            found = self.retrieve(query.query, terms, Filter.of(query, audiences, scope), stages, trace)
        measuring = stages.start("measure", lambda: self.retrieve.measure(found))  # concurrently with the reranker
        reranked = rerank(query.query, found.profiles, stages, trace, {"query_id": query_id, "request_id": request_id})
        candidates = found.candidates(query.query, finish(measuring, trace))
        ranked = rank(candidates, reranked.scores, reranked.intent, self.scoring)
        thresholds = self.thresholds.of(reranked=bool(reranked.scores), neural=bool(found.cosine))
        verdict, least = thresholds.verdict(best_relevance(ranked)), thresholds.cut(query.min_relevance)
        if trace.unread and verdict is Verdict.NONE and ranked:  # a low relevance may be due to the language
            verdict, least = Verdict.WEAK, 0.0 if query.min_relevance == "weak" else least
        kept, cut = split_by_relevance(ranked, least)
        ranked = (*kept, *cut)
        if query.explain:
            ranked = tuple(replace(result, why=explain(terms, result.candidate.profile)) for result in ranked)
        trace.took_ms["total"] = stages.clock.elapsed_ms() - began
        return Shortlist(
            query_id=query_id,
            query=query,
            verdict=verdict,
            intent=reranked.intent,
            ranked=ranked,
            shown=min(limit, len(kept)),
            trace=trace,
        )

    def with_scoring(self, **changes: Any) -> "Discover":
        """The same with other fields of `Scoring`."""
        return replace(self, scoring=replace(self.scoring, **changes))

    def _limit(self, query: Query) -> int:
        most = self.retrieve.k
        if query.limit and query.limit > most:
            raise RequestInvalid([Fault("limit", f"must be at most {most}, the number of candidates")])
        return query.limit or most

    def _trace(self, reranker: Reranker | None) -> Trace:
        encoder = self.retrieve.encoder
        return Trace(
            index=self.retrieve.index.name,
            encoder=encoder.name if encoder else None,
            reranker=reranker.name if reranker else None,
            prompt=reranker.prompt if reranker else None,
            calibration=self.calibration,
        )
