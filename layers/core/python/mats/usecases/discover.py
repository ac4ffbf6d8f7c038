"""Answer a query with ranked capabilities: retrieve k, rerank once, blend, leave a receipt. Nothing is invoked."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, Fault, RequestInvalid
from mats.domain.learning.outcome import Receipt, asking, pack_vector
from mats.domain.learning.reliability import Tallies, count
from mats.domain.profile.index_fields import explain
from mats.domain.profile.profile import Profile
from mats.domain.prompts.rerank_prompt import shuffle_positions
from mats.domain.prompts.rerank_reply import RerankResult
from mats.domain.ranking.blend import Verdict, VerdictThresholds
from mats.domain.ranking.named import Exactness
from mats.domain.ranking.query import ANYWHERE, Filter, Query, Scope
from mats.domain.shortlist.fitness import Fitness
from mats.domain.shortlist.rank import Scoring, Shortlist, note_on_moved, note_on_none, place_unfit, present, rank
from mats.domain.shortlist.trace import CalibrationSource, RerankStats, Trace
from mats.domain.text.words import query_terms
from mats.ports import NO_LABELS, Ids, Labels, Receipts, Reranker
from mats.usecases.retrieve import Measured, Recent, Retrieve, Retrieved
from mats.usecases.stages import CircuitBreaker, Stage, Stages, finish

_STAGE = "receipt"
_BUDGET_MS = 50  # Counted from when the candidates are known: only an answer that is ready sooner waits for it


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveReceipt:
    """Stores receipts while and after answers are made."""

    later: Receipts  # Takes a receipt at once and stores it in the background
    early: Receipts | None = None
    """Stores one that may be shown once the candidates are known, for where nothing is sure to run after the answer."""
    texts: bool = True  # Whether queries are stored

    def begin(
        self, query_id: str, query: Query, found: Retrieved, caller: str, audiences: Collection[str], stages: Stages
    ) -> Callable[[Shortlist], Shortlist]:
        """Start storing the receipt of an answer whose candidates are known.

        The function that is returned stores what is shown, and returns the answer, degraded by `receipt` if it cannot.
        """
        vector = found.searches[0].vector if found.searches[0] else None  # of the whole request
        others = query.namespaces or query.tags or query.effects or query.holds
        begun = Receipt(
            query_id=query_id,
            text=query.text if self.texts else "",
            caller=caller,
            audiences=frozenset(audiences),
            at=stages.clock.now(),
            shown=tuple(profile.id for profile in found.chosen.profiles),
            narrowed=bool(query.kinds or others),
            kinds=() if others else query.kinds,
            vector=pack_vector(vector) if vector is not None else None,
        )
        early = self.early
        stage = stages.start(_STAGE, lambda: early.put(begun), budget_ms=_BUDGET_MS) if early else None

        def complete(shortlist: Shortlist) -> Shortlist:
            trace = shortlist.trace
            best = shortlist.ranked[0] if shortlist.ranked else None
            receipt = replace(
                begun,
                shown=tuple(result.id for result in shortlist.results),
                verdict=shortlist.verdict,
                nearest=best.id if best else None,
                relevance=best.relevance if best else None,
                encoder=trace.encoder or "" if begun.vector else "",
            )
            finish(stage, trace)
            try:
                self.later.put(receipt)
            except DependencyFailed as error:
                if not stage:  # else the early one is stored, or its failure is in the trace
                    trace.lose(_STAGE, f"{_STAGE}: {error}")
            return shortlist

        return complete


@dataclass(frozen=True, slots=True)
class Reranked:
    """The scores in [0, 1] by id, the type inferred from the query, the steps of a task; empty if it failed."""

    scores: Mapping[Id, float] = field(default_factory=dict)
    intent: str | None = None
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerank:
    reranker: Reranker | None
    shuffle: bool = False  # Send candidates in a pseudo-random order, seeded by the query
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    shared: Recent[RerankResult] | None = None
    """Usable replies by all that they depend on, model, request and candidates as indexed: equal questions cost one
    call, and callers with other audiences share a reply only where they see the same."""

    def __call__(
        self,
        reranker: Reranker | None,
        text: str,
        profiles: Sequence[Profile],
        stages: Stages,
        trace: Trace,
        labels: Labels = NO_LABELS,
    ) -> Reranked:
        """The reranker's scores; none if there is no reranker, it failed, or its reply could not be used."""
        if reranker is None:
            trace.without.append("llm")
            return Reranked()
        if not profiles:
            return Reranked()
        order = shuffle_positions(len(profiles), text) if self.shuffle else range(len(profiles))
        sent = [profiles[position] for position in order]
        key = (reranker.name, reranker.prompt, text, tuple((profile.id, profile.rev) for profile in sent))
        known = self.shared.get(key) if self.shared else None
        ask = partial(reranker.rerank, text, sent, labels)
        reply = known or stages.begin_call("rerank", ask, self.breaker, trace)()
        if reply is None:
            return Reranked()
        if not known:
            trace.usage = reply.usage
        unfit = not 0 < len(reply.scores) <= len(sent)
        void = reply.void or (f"{len(reply.scores)} scores for {len(sent)} candidates" if unfit else "")
        trace.rerank = RerankStats(
            scored=0 if void else len(reply.scores), clipped=reply.clipped, cut_off=reply.cut_off
        )
        if void:
            trace.lose("llm", f"rerank: {void}")
            return Reranked()
        if self.shared and not known:
            self.shared.put(key, reply)
        if reply.cut_off:
            trace.faults.append(f"rerank: the reply was cut off after {len(reply.scores)} of {len(sent)} scores")
        if reply.clipped:
            trace.faults.append(f"rerank: {reply.clipped} scores were out of range and clipped")
        scores = {profile.id: score for profile, score in zip(sent, reply.scores, strict=False)}
        return Reranked(scores, reply.intent, reply.steps)


_Found: TypeAlias = tuple[Retrieved, Stage[Measured], Stage[Tallies] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Discover:
    """Answer queries. The signal of a failed or late stage is left out, and the answer is marked as degraded."""

    retrieve: Retrieve
    rerank: Rerank
    stages: Stages
    scoring: Scoring
    thresholds: VerdictThresholds
    ids: Ids
    calibration: CalibrationSource | None = None
    tallies: Callable[[Collection[Id]], Tallies] | None = None
    """Reads the reported outcomes of candidates; None: reliability is the trust alone."""
    margin: float | None = None
    """The reranker is asked only where the first place is open: no exact match has it, and the relevance of the second
    is nearer than this. None: always."""
    gate: AbstractContextManager[Any] = field(default_factory=nullcontext)
    """Limits concurrent retrievals: with many queries on few cores, budgets start only after the wait for it."""

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

        The caller's own reports count more than those of others. `request_id` is for the log of the reranker's calls.
        Without `receipts`, the answer leaves none.

        Raises:
            RequestInvalid: `limit` exceeds the number of candidates.
            DependencyFailed: neither side of retrieval answered.
        """
        limit, query_id = query.limit or self.retrieve.k, self.ids()
        if limit > self.retrieve.k:
            raise RequestInvalid([Fault("limit", f"must be at most {self.retrieve.k}, the number of candidates")])
        stages, reranker, encoder = self.stages, self.rerank.reranker, self.retrieve.encoder
        began = stages.clock.elapsed_ms()
        trace = Trace(
            index=self.retrieve.index.name,
            encoder=encoder.name if encoder else None,
            reranker=reranker.name if reranker else None,
            prompt=reranker.prompt if reranker else None,
            calibration=self.calibration,
        )
        fitness = Fitness(query.holds, {}) if query.holds else None
        admitted = replace(Filter.of(query, audiences, scope), fitness=fitness)
        found, measuring, reading = self._find(query.texts, admitted, trace, asking(caller))
        complete = receipts and receipts.begin(query_id, query, found, caller, audiences, stages)
        measured = None if self.margin is None else finish(measuring, trace)
        if self.margin is not None and len(query.texts) == 1 and self._is_settled(found, measured, self.margin):
            reranker = None
        labels = {"query_id": query_id, "request_id": request_id}
        reranked = self.rerank(reranker, query.text, found.chosen.profiles, stages, trace, labels)
        planned = bool(reranked.steps and not query.asks_for_parts)
        if planned:
            own = trace.branch()
            try:
                picked = _picks(found.chosen.profiles, reranked.scores)[: self.retrieve.k // 2]
                texts = (reranked.steps[0], *reranked.steps)  # not the whole again
                found, measuring, reading = self._find(texts, admitted, own, asking(caller), picked)
            except DependencyFailed as error:
                planned = False
                trace.faults.append(f"plan: {error}")
            trace.merge(own)
        if planned or self.margin is None:
            measured = finish(measuring, trace)
        candidates, steps = found.candidates(measured, self.scoring.scale)
        now, tallies = stages.clock.now(), finish(reading, trace) or {}
        counts = {id: count(rows, asking=asking(caller), now=now) for id, rows in tallies.items()}
        ranked = rank(candidates, reranked.scores, reranked.intent, self.scoring, counts, planned=planned)
        if query.explain:
            terms = query_terms(query.text)
            ranked = tuple(replace(result, why=explain(terms, result.candidate.profile)) for result in ranked)
        if not (query.asks_for_parts or planned) and len(steps.texts) > 1:
            ranked = steps.in_turn(ranked, best_first=False)
        comparable = max((len(each.cosine) for each in found.searches if each), default=0)  # hits of neural search
        trace.thresholds = thresholds = self.thresholds.of(
            reranked=bool(reranked.scores), searched=min(1.0, comparable / self.retrieve.depth)
        )
        if fitness:
            ranked = place_unfit(ranked, fitness, thresholds)
        verdict, placed, shown, parts = present(
            ranked, thresholds, steps, limit=limit, min_relevance=query.min_relevance, unread=trace.unread
        )
        if not (query.asks_for_parts or planned):
            verdict = parts[0].verdict or verdict
        trace.notes += note_on_moved(placed[:shown])
        if verdict is Verdict.NONE and ranked:
            trace.notes.append(note_on_none(ranked))
        trace.took_ms["total"] = stages.clock.elapsed_ms() - began
        shortlist = Shortlist(
            query_id=query_id, query=query, verdict=verdict, intent=reranked.intent, ranked=placed,
            shown=shown, parts=parts if query.asks_for_parts else (), trace=trace,
            excluded=tuple(sorted(fitness.excluded.items())) if fitness else (),
        )  # fmt: skip
        return complete(shortlist) if complete else shortlist

    def _find(
        self, texts: Sequence[str], admitted: Filter, trace: Trace, caller: str, picked: Sequence[Profile] = ()
    ) -> _Found:
        """Retrieve, and start what goes on beside the reranker."""
        stages, started = self.stages, self.stages.clock.elapsed_ms()
        with self.gate:
            trace.took_ms["queue"] = stages.clock.elapsed_ms() - started
            found = self.retrieve(texts, admitted, stages, trace, caller=caller, picked=picked)
        measuring = stages.start("measure", partial(self.retrieve.measure, found))
        ids = [profile.id for profile in found.chosen.profiles]
        reading = stages.start("reliability", partial(self.tallies, ids)) if self.tallies and ids else None
        return found, measuring, reading

    def _is_settled(self, found: Retrieved, measured: Measured | None, margin: float) -> bool:
        """True if no reranker is needed to tell the first place."""
        candidates, _ = found.candidates(measured, self.scoring.scale)
        first, second = (*rank(candidates, {}, None, self.scoring), None, None)[:2]
        if first is None or second is None:
            return False
        return (first.candidate.exact or 0) >= Exactness.NAME or first.relevance - second.relevance >= margin

    def with_scoring(self, **changes: Any) -> "Discover":
        """The same with other fields of `Scoring`."""
        return replace(self, scoring=replace(self.scoring, **changes))


SETTLED = 0.6
"""With `rerank=auto`, the distance of the first two in relevance from which on the first place is settled: 0094."""
_SERVES = 0.7  # The reranker's score from which on a candidate does a whole part of a request: `prompts/rerank.md`


def _picks(profiles: Sequence[Profile], scores: Mapping[Id, float]) -> list[Profile]:
    """The profiles that the reranker finds to serve the request or a part of it, best first."""
    picked = [profile for profile in profiles if scores.get(profile.id, 0.0) >= _SERVES]
    return sorted(picked, key=lambda profile: -scores[profile.id])
