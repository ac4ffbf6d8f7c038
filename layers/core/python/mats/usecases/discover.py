"""Answer a query with ranked capabilities: retrieve k, rerank once, blend. Nothing is invoked."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from mats.domain.capability import Id
from mats.domain.errors import DependencyFailed, Fault, RequestInvalid, StorageUnusable
from mats.domain.explain import explain, pairs_found
from mats.domain.profile import Profile
from mats.domain.query import ANYWHERE, Filter, Query, Scope
from mats.domain.ranking import (
    Fusion,
    Scale,
    Signal,
    Standing,
    Thresholds,
    Weights,
    best_first,
    blend,
    fuse,
    in_order,
    intent,
    quality,
    shares,
    standing_in,
)
from mats.domain.rerank_prompt import shuffle_positions
from mats.domain.shortlist import Candidate, Judged, Result, Shortlist
from mats.domain.suspicion import copies
from mats.domain.text import pairs, query_terms
from mats.ports import Clock, Encoder, Hit, Ids, Reranker, RerankResult, SearchIndex, Vector
from mats.usecases.breaker import Breaker
from mats.usecases.budget import Stage, start

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """How long each stage may take before the answer goes on without it, in milliseconds."""

    encode_ms: float = 400
    retrieve_ms: float = 600
    rerank_ms: float = 2_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """The first stage: how deep each list goes, how they are fused, how many candidates come out."""

    k: int = 15
    depth: int = 200
    fusion: Fusion = partial(fuse, lexical_share=0.6)


@dataclass(slots=True)
class _Trace:
    """What happened on the way."""

    took_ms: dict[str, float] = field(default_factory=dict)
    degraded: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    storage: StorageUnusable | None = None

    @property
    def why(self) -> str:
        return "; ".join(self.faults)

    def lose(self, part: str, why: str) -> None:
        self.degraded.append(part)
        self.faults.append(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discover:
    """Answer queries. A stage that fails or is late leaves its signal out of the answer, which says so.

    Stages that ask a model run on `models`, so that those a model leaves hanging take no thread from the index. With
    `shuffle`, candidates are put to the reranker in an order that the query decides, not in that of retrieval. `gate`
    lets retrieval in: where many queries share few cores, those that wait before it do not spend their budgets.
    """

    index: SearchIndex
    encoder: Encoder | None
    reranker: Reranker | None
    scale: Scale
    weights: Weights
    thresholds: Thresholds
    lexical_thresholds: Thresholds
    judged_thresholds: Thresholds
    clock: Clock
    ids: Ids
    executor: Executor
    models: Executor
    breaker: Breaker = field(default_factory=Breaker)
    encoder_breaker: Breaker = field(default_factory=Breaker)
    retrieval: Retrieval = Retrieval()
    budgets: Budgets = Budgets()
    shuffle: bool = False
    gate: AbstractContextManager[Any] = field(default_factory=nullcontext)

    def __call__(self, query: Query, audiences: Collection[str] = (), scope: Scope = ANYWHERE) -> Shortlist:
        """The shortlist for a query asked by a caller who belongs to these audiences.

        Raises:
            RequestInvalid: more results are asked for than there are candidates.
            DependencyFailed: neither side of retrieval answered.
        """
        limit = self._limit(query)
        began, trace = self.clock.elapsed_ms(), _Trace()
        terms = query_terms(query.query)
        with self.gate:
            trace.took_ms["queue"] = self.clock.elapsed_ms() - began
            found = self._retrieve(query, terms, Filter.of(query, audiences, scope), trace)
        candidates, result, scores = self._judged(query, found, trace)
        ranked = self._ranked(candidates, scores, result.intent)
        judged = [result for result in ranked if Signal.LLM in result.signals]
        best = max((result.relevance for result in judged or ranked), default=None)
        if query.explain:
            ranked = [replace(result, why=explain(terms, result.candidate.profile)) for result in ranked]
        trace.took_ms["total"] = self.clock.elapsed_ms() - began
        return Shortlist(
            query_id=self.ids(),
            query=query,
            verdict=self._thresholds(result, found).verdict(best),
            intent=result.intent,
            degraded=tuple(trace.degraded),
            faults=tuple(trace.faults),
            ranked=tuple(ranked),
            shown=min(limit, len(ranked)),
            took_ms=trace.took_ms,
            usage=result.usage,
            index=self.index.name,
            encoder=self.encoder.name if self.encoder else None,
            reranker=self.reranker.name if self.reranker else None,
            prompt=self.reranker.prompt if self.reranker else None,
            judged=Judged(scored=len(scores), clipped=result.clipped, cut_off=result.cut_off),
        )

    def _limit(self, query: Query) -> int:
        limit = query.limit or self.retrieval.k
        if limit > self.retrieval.k:
            raise RequestInvalid([Fault("limit", f"must be at most {self.retrieval.k}, the candidates looked at")])
        return limit

    def _retrieve(self, query: Query, terms: Sequence[str], admitted: Filter, trace: _Trace) -> "_Found":
        """The k candidates that fusion puts first; lexical search runs beside the encoder."""
        depth = self.retrieval.depth
        lexical_stage = self._start("lexical", lambda: self.index.lexical(terms, admitted, depth=depth))
        vector = self._vector(query.query, trace)
        deadline_ms = self.clock.elapsed_ms() + self.budgets.retrieve_ms
        neural_stage = vector and self._start("neural", lambda: self.index.neural(vector, admitted, depth=depth))
        lexical = _finish(lexical_stage, trace)
        neural = _finish(neural_stage, trace) if neural_stage else None
        if lexical is None and neural is None:
            raise trace.storage or DependencyFailed(f"the search index did not answer; try again ({trace.why})")
        if neural is not None and not neural and lexical:
            trace.degraded.append("neural")  # there are entries, and none has a vector of this encoder
        fused = self.retrieval.fusion(_scores(lexical), _scores(neural))
        ids = best_first(fused)[: self.retrieval.k]
        left_ms = deadline_ms - self.clock.elapsed_ms()  # one budget for all that retrieval takes after encoding
        fetched, trace.took_ms["fetch"] = self._start(
            "fetch", lambda: self.index.fetch(ids), budget_ms=left_ms
        ).result()
        profiles = [fetched[id] for id in ids if id in fetched and admitted.sees(fetched[id].visible_to)]
        return _Found(profiles, terms if lexical is not None else None, vector, _scores(lexical), _scores(neural))

    def _vector(self, text: str, trace: _Trace) -> Vector | None:
        encoder = self.encoder
        if encoder is None:
            trace.degraded.append("neural")
            return None
        if not self.encoder_breaker.admits(self.clock.elapsed_ms()):
            trace.lose("neural", "encode: not asked, because it failed several times in a row")
            return None
        stage = self._ask("encode", lambda: encoder.encode_query(text), budget_ms=self.budgets.encode_ms)
        return self._heard(_finish(stage, trace, lost="neural"), self.encoder_breaker)

    def _judged(
        self, query: Query, found: "_Found", trace: _Trace
    ) -> tuple[list[Candidate], RerankResult, Mapping[Id, float]]:
        """The candidates fully measured, what the reranker said and its scores; the index measures while it thinks."""
        measuring = self._start("measure", lambda: found.measured_by(self.index))
        order = shuffle_positions(len(found.profiles), query.query) if self.shuffle else range(len(found.profiles))
        put = [found.profiles[position] for position in order]
        result = self._opinion(query, put, trace)
        scores = {profile.id: score for profile, score in zip(put, result.scores, strict=False)}
        bm25, cosine = _finish(measuring, trace, lost="bm25") or ({}, found.neural)
        asked = pairs(query.query)
        candidates = [
            Candidate(
                profile=profile,
                bm25=bm25.get(profile.id),
                cosine=cosine.get(profile.id),
                pairs=pairs_found(asked, profile),
            )
            for profile in found.profiles
        ]
        return candidates, result, scores

    def _opinion(self, query: Query, profiles: Sequence[Profile], trace: _Trace) -> RerankResult:
        """What the reranker thinks; one without scores if there is none to ask, it failed or made no sense."""
        reranker = self.reranker
        if reranker is None or not profiles:
            trace.degraded.extend(["llm"] if reranker is None else [])
            return RerankResult()
        if not self.breaker.admits(self.clock.elapsed_ms()):
            trace.lose("llm", "rerank: not asked, because it failed several times in a row")
            return RerankResult()
        stage = self._ask("rerank", lambda: reranker.rerank(query.query, profiles), budget_ms=self.budgets.rerank_ms)
        result = self._heard(_finish(stage, trace, lost="llm"), self.breaker)
        if result is None:
            return RerankResult()
        if result.void or not 0 < len(result.scores) <= len(profiles):
            void = result.void or f"{len(result.scores)} scores for {len(profiles)} candidates"
            trace.lose("llm", f"rerank: {void}")
            return replace(result, scores=(), intent=None)
        trace.faults.extend(_faults(result, len(profiles)))
        return result

    def _thresholds(self, result: RerankResult, found: "_Found") -> Thresholds:
        """On which scale the relevance of this answer is."""
        if result.scores:
            return self.judged_thresholds
        return self.thresholds if found.neural else self.lexical_thresholds

    def _ranked(
        self, candidates: Sequence[Candidate], judged: Mapping[Id, float], inferred: str | None
    ) -> list[Result]:
        weights = self.weights if judged else standing_in(self.weights)
        alike = copies({c.profile.id: c.profile.source.description for c in candidates if c.profile.source})
        results = {c.profile.id: self._result(c, judged.get(c.profile.id), inferred, weights) for c in candidates}
        results = {
            id: replace(result, suspicious=(*result.suspicious, alike[id])) if id in alike else result
            for id, result in results.items()
        }
        order = in_order(
            [
                Standing(id, r.score, r.candidate.profile.lifecycle, judged=Signal.LLM in r.signals or not judged)
                for id, r in results.items()
            ]
        )
        return [results[id] for id in order]

    def _result(self, candidate: Candidate, llm: float | None, inferred: str | None, weights: Weights) -> Result:
        profile = candidate.profile
        retrieval = self.scale.retrieval(candidate.bm25, candidate.cosine, candidate.pairs)
        measured = {
            Signal.LLM: llm,
            Signal.RETRIEVAL: retrieval,
            Signal.BM25: None if candidate.bm25 is None else self.scale.bm25(candidate.bm25),
            Signal.QUALITY: quality(profile.trust),
            Signal.INTENT: intent(inferred, kind=profile.kind, type_tags=profile.type_tags),
        }
        signals = {signal: value for signal, value in measured.items() if value is not None and signal in weights}
        return Result(
            candidate=candidate,
            score=blend(signals, weights),
            signals=signals,
            weights=shares(signals, weights),
            relevance=llm if llm is not None else retrieval or 0.0,
            suspicious=profile.suspicious,
        )

    def _heard(self, reply: T | None, breaker: Breaker) -> T | None:
        """The reply, if there was one; the breaker hears of it either way."""
        if reply is None:
            breaker.failed(self.clock.elapsed_ms())
        else:
            breaker.answered()
        return reply

    def _ask(self, name: str, work: Callable[[], T], *, budget_ms: float) -> Stage[T]:
        return start(name, work, budget_ms=budget_ms, executor=self.models, clock=self.clock)

    def _start(self, name: str, work: Callable[[], T], *, budget_ms: float | None = None) -> Stage[T]:
        budget = self.budgets.retrieve_ms if budget_ms is None else budget_ms
        return start(name, work, budget_ms=budget, executor=self.executor, clock=self.clock)


@dataclass(frozen=True, slots=True)
class _Found:
    """What retrieval brought back."""

    profiles: Sequence[Profile]
    terms: Sequence[str] | None
    vector: Vector | None
    lexical: Mapping[Id, float]
    neural: Mapping[Id, float]

    def measured_by(self, index: SearchIndex) -> tuple[Mapping[Id, float], Mapping[Id, float]]:
        """BM25 and cosine of every candidate, also those that only the other side found."""
        ids = [profile.id for profile in self.profiles]
        bm25, cosine = dict(self.lexical), dict(self.neural)
        unscored = [id for id in ids if id not in bm25]
        if self.terms is not None and unscored:
            bm25 |= index.bm25_of(self.terms, unscored)
        far = [id for id in ids if id not in cosine]
        if self.vector is not None and far:
            cosine |= index.cosine_of(self.vector, far)
        return bm25, cosine


def _finish(stage: Stage[T], trace: _Trace, *, lost: str = "") -> T | None:
    """What the stage gave, its time noted; None if it failed, which the answer says."""
    try:
        value, trace.took_ms[stage.name] = stage.result()
    except DependencyFailed as error:
        trace.lose(lost or stage.name, f"{stage.name}: {error}")
        if isinstance(error, StorageUnusable):
            trace.storage = error
        return None
    return value


def _faults(result: RerankResult, candidates: int) -> Iterator[str]:
    """What was wrong with a reply that could be used all the same."""
    if result.cut_off:
        yield f"rerank: the reply was cut off after {len(result.scores)} of {candidates} scores"
    if result.clipped:
        yield f"rerank: {result.clipped} scores were out of range and clipped"


def _scores(hits: Sequence[Hit] | None) -> dict[Id, float]:
    return {hit.id: hit.score for hit in hits or ()}
