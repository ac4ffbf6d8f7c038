"""Answer a query with ranked capabilities: retrieve k, rerank once, blend. Nothing is invoked."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, Fault, RequestInvalid
from mats.domain.learning.reliability import Counts, Tallies, count
from mats.domain.profile.index_fields import explain
from mats.domain.profile.profile import Profile
from mats.domain.ranking.blend import Verdict, VerdictThresholds
from mats.domain.ranking.query import ANYWHERE, Filter, Query, Scope
from mats.domain.shortlist.rank import Result, Scoring, Shortlist, note_on_none, present, rank
from mats.domain.shortlist.trace import CalibrationSource, StageRun, Trace
from mats.domain.text.words import query_terms
from mats.ports import Ids, Reranker
from mats.usecases.receipts import LeaveReceipt
from mats.usecases.rerank import Rerank
from mats.usecases.retrieve import Measured, Retrieve, Retrieved
from mats.usecases.stages import Stage, Stages, finish


@dataclass(frozen=True, slots=True, kw_only=True)
class Discover:
    """Answer queries. The signal of a failed or late stage is left out, and the answer is marked as degraded.

    The answer names models that are not configured in `without`.
    `tallies` reads what callers reported on candidates; None: reliability is the trust alone.
    `gate` limits concurrent retrievals: with many queries on few cores, budgets start only after the wait for it.
    """

    retrieve: Retrieve
    rerank: Rerank
    stages: Stages
    scoring: Scoring
    thresholds: VerdictThresholds
    ids: Ids
    calibration: CalibrationSource | None = None
    tallies: Callable[[Collection[Id]], Tallies] | None = None
    gate: AbstractContextManager[Any] = field(default_factory=nullcontext)

    def __call__(
        self,
        query: Query,
        audiences: Collection[str] = (),
        scope: Scope = ANYWHERE,
        *,
        caller: str = "",
        request_id: str = "",
        receipts: LeaveReceipt | None = None,
    ) -> Shortlist:
        """Rank the capabilities visible to a caller in these audiences.

        Args:
            query: The request.
            audiences: Of the caller.
            scope: Restricts the search further.
            caller: Who asks; its own reports count more than those of others.
            request_id: Of the request that asks, for the log of the reranker's calls.
            receipts: Where the answer leaves a receipt; None: it leaves none.

        Raises:
            RequestInvalid: `limit` exceeds the number of candidates.
            DependencyFailed: neither side of retrieval answered.
        """
        limit, query_id = self._limit(query), self.ids()
        stages, reranker = self.stages, self.rerank.current()
        trace = self._trace(reranker)
        trace.began_ms = began = stages.clock.elapsed_ms()
        admitted = Filter.of(query, audiences, scope)

        def find(texts: Sequence[str], trace: Trace, picked: Sequence[Profile] = ()) -> _Found:
            started = stages.clock.elapsed_ms()
            with self.gate:
                trace.took_ms["queue"] = stages.clock.elapsed_ms() - started
                trace.runs.append(StageRun("queue", started, trace.took_ms["queue"]))
                found = self.retrieve(texts, admitted, stages, trace, caller=caller, picked=picked)
            measuring = stages.start("measure", partial(self.retrieve.measure, found))  # concurrently with the reranker
            ids = [profile.id for profile in found.profiles]
            reading = stages.start("reliability", partial(self.tallies, ids)) if self.tallies and ids else None
            return found, measuring, reading

        found, measuring, reading = find(query.texts, trace)
        receipt = receipts and receipts.begin(query_id, query, found, caller, audiences, stages)
        labels = {"query_id": query_id, "request_id": request_id}
        reranked = self.rerank(reranker, query.text, found.profiles, stages, trace, labels)
        planned = bool(reranked.steps and not query.asks_for_parts)
        if planned:
            own = trace.branch()
            try:
                picked = _picks(found.profiles, reranked.scores)[: self.retrieve.k // 2]
                found, measuring, reading = find(
                    (reranked.steps[0], *reranked.steps), own, picked
                )  # not the whole again
            except DependencyFailed as error:
                planned = False
                trace.faults.append(f"plan: {error}")
            trace.merge(own)
        candidates, steps = found.candidates(finish(measuring, trace), self.scoring.scale)
        counts = self._count(reading, caller, trace)
        ranked = _with_reasons(
            rank(candidates, reranked.scores, reranked.intent, self.scoring, counts, planned=planned), query
        )
        if not (query.asks_for_parts or planned):
            ranked = steps.in_turn(ranked)
        trace.thresholds = thresholds = self.thresholds.of(
            reranked=bool(reranked.scores), searched=min(1.0, found.comparable / self.retrieve.depth)
        )
        shown = present(ranked, thresholds, steps, limit=limit, min_relevance=query.min_relevance, unread=trace.unread)
        verdict = shown.verdict if query.asks_for_parts or planned else shown.parts[0].verdict or shown.verdict
        if verdict is Verdict.NONE and ranked:
            trace.notes.append(note_on_none(ranked))
        trace.took_ms["total"] = stages.clock.elapsed_ms() - began
        shortlist = Shortlist(
            query_id=query_id, query=query, verdict=verdict, intent=reranked.intent, ranked=shown.ranked,
            shown=shown.count, parts=shown.parts if query.asks_for_parts else (), trace=trace,
        )  # fmt: skip
        return receipt.complete(shortlist) if receipt else shortlist

    def with_scoring(self, **changes: Any) -> "Discover":
        """The same with other fields of `Scoring`."""
        return replace(self, scoring=replace(self.scoring, **changes))

    def _count(self, reading: Stage[Tallies] | None, caller: str, trace: Trace) -> Mapping[Id, Counts]:
        """The reported outcomes that count for the caller; none if they cannot be read."""
        tallies = finish(reading, trace)
        now = self.stages.clock.now()
        return {id: count(rows, asking=caller, now=now) for id, rows in (tallies or {}).items()}

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


_SERVES = 0.7
"""The reranker's score from which on a candidate does a whole part of a request: `prompts/rerank.md`."""
_Found: TypeAlias = tuple[Retrieved, Stage[Measured], Stage[Tallies] | None]


def _picks(profiles: Sequence[Profile], scores: Mapping[Id, float]) -> list[Profile]:
    """The profiles that the reranker finds to serve the request or a part of it, best first."""
    picked = [profile for profile in profiles if scores.get(profile.id, 0.0) >= _SERVES]
    return sorted(picked, key=lambda profile: -scores[profile.id])


def _with_reasons(ranked: tuple[Result, ...], query: Query) -> tuple[Result, ...]:
    """The results with the words that matched, if the query asks for them."""
    if not query.explain:
        return ranked
    terms = query_terms(query.text)
    return tuple(replace(result, why=explain(terms, result.candidate.profile)) for result in ranked)
