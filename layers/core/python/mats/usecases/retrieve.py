"""The first stage: lexical and neural search, fused into k candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from mats.domain.capability import Id
from mats.domain.echoes import find_echoes
from mats.domain.errors import DependencyFailed
from mats.domain.explain import pairs_found
from mats.domain.near_duplicates import NearDuplicates, limit_near_duplicates
from mats.domain.profile import Profile
from mats.domain.query import Filter
from mats.domain.ranking import Fusion, Scores, best_first, fuse
from mats.domain.shortlist import Candidate
from mats.domain.text import pairs
from mats.domain.trace import Trace
from mats.ports import Encoder, Hit, SearchIndex, Vector
from mats.usecases.circuit_breaker import CircuitBreaker
from mats.usecases.stages import Stages, finish


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The profiles found, in the order of fusion, with both lists of scores; `terms`: None if lexical search failed.

    `near` has the near-duplicates of each profile that has any, those that were left out included.
    """

    profiles: Sequence[Profile]
    near: Mapping[Id, frozenset[Id]]
    terms: Sequence[str] | None
    vector: Vector | None
    bm25: Scores
    cosine: Scores

    def candidates(self, text: str, measured: tuple[Scores, Scores] | None) -> list[Candidate]:
        """The profiles with their measurements; without BM25 scores if measuring failed."""
        bm25, cosine = measured or ({}, self.cosine)
        wanted = pairs(text)
        return [
            Candidate(
                profile=p,
                bm25=bm25.get(id),
                cosine=cosine.get(id),
                pairs=pairs_found(wanted, p),
                near=self.near.get(id, frozenset()),
            )
            for id, p in ((profile.id, profile) for profile in self.profiles)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieve:
    """Find the best `k` profiles by fusion of `depth` hits of each side.

    Of near-duplicates and of echoes of the request only some are kept; the next best of the first `window` hits replace
    the others. `unrated` is the trust of an unrated profile beside these, 0 to 100.
    """

    index: SearchIndex
    encoder: Encoder | None
    k: int = 15
    depth: int = 200
    window: int = 60
    unrated: int = 50
    fusion: Fusion = partial(fuse, lexical_share=0.6)
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)

    def __call__(self, text: str, terms: Sequence[str], admitted: Filter, stages: Stages, trace: Trace) -> Retrieved:
        """Search both sides; lexical search runs concurrently with the encoder. A failed side is left out.

        Raises:
            DependencyFailed: neither side answered.
        """
        index = self.index
        lexical_stage = stages.start("lexical", lambda: index.lexical(terms, admitted, depth=self.depth))
        vector = self._encode(text, stages, trace)
        deadline_ms = stages.clock.elapsed_ms() + stages.budgets.retrieve_ms
        neural_stage = vector and stages.start("neural", lambda: index.neural(vector, admitted, depth=self.depth))
        lexical = finish(lexical_stage, trace)
        neural = finish(neural_stage, trace) if neural_stage else None
        if lexical is None and neural is None:
            message = f"the search index did not answer; try again ({'; '.join(trace.faults)})"
            raise trace.unusable or DependencyFailed(message)
        if neural is not None and not neural and lexical:
            trace.degraded.append("neural")  # no entry has a vector of this encoder
        bm25, cosine = _scores(lexical), _scores(neural)
        ids = best_first(self.fusion(bm25, cosine))
        left_ms = deadline_ms - stages.clock.elapsed_ms()  # one budget for all of retrieval after encoding
        fetching = stages.start("fetch", lambda: self._fetch(text, ids, admitted), budget_ms=left_ms)
        (profiles, near), trace.took_ms["fetch"] = fetching.result()
        return Retrieved(profiles, near, terms if lexical is not None else None, vector, bm25, cosine)

    def _fetch(
        self, text: str, ids: Sequence[Id], admitted: Filter
    ) -> tuple[Sequence[Profile], Mapping[Id, frozenset[Id]]]:
        """The first `k` visible profiles that are kept, in order, and the near-duplicates of each.

        If all are kept, one read is enough. A second one replaces those that were left out; if that leaves out more, a
        third one reads the rest of the window.
        """
        profiles = self._load(ids[: self.k], admitted)
        shared = self._limit(text, profiles)
        end, free = self.k, len(profiles) - len(shared.kept)
        for further in (self.k + free, max(self.k, self.window)):
            if free > 0:
                profiles += self._load(ids[end:further], admitted)
                shared = self._limit(text, profiles)
                end, free = further, self.k - len(shared.kept)
        return [profiles[position] for position in shared.kept[: self.k]], shared.near

    def _limit(self, text: str, profiles: Sequence[Profile]) -> NearDuplicates:
        return limit_near_duplicates(profiles, unrated=self.unrated, echoes=find_echoes(text, profiles))

    def _load(self, ids: Sequence[Id], admitted: Filter) -> list[Profile]:
        fetched = self.index.fetch(ids)
        return [fetched[id] for id in ids if id in fetched and admitted.sees(fetched[id].visible_to)]

    def _encode(self, text: str, stages: Stages, trace: Trace) -> Vector | None:
        encoder = self.encoder
        if encoder is None:
            trace.without.append("neural")
            return None
        return stages.call_model("encode", lambda: encoder.encode_query(text), self.breaker, trace)

    def measure(self, found: Retrieved) -> tuple[Scores, Scores]:
        """BM25 and cosine of every candidate, including those that only the other side found.

        Raises:
            DependencyFailed: the index did not answer.
        """
        ids = [profile.id for profile in found.profiles]
        bm25, cosine = dict(found.bm25), dict(found.cosine)
        if found.terms is not None and (missing := _missing(ids, bm25)):
            bm25 |= self.index.bm25_of(found.terms, missing)
        if found.vector is not None and (missing := _missing(ids, cosine)):
            cosine |= self.index.cosine_of(found.vector, missing)
        return bm25, cosine


def _missing(ids: Sequence[Id], scores: Mapping[Id, float]) -> list[Id]:
    return [id for id in ids if id not in scores]


def _scores(hits: Sequence[Hit] | None) -> dict[Id, float]:
    return {hit.id: hit.score for hit in hits or ()}
