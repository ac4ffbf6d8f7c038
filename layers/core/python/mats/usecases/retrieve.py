"""The first stage: lexical and neural search, fused into k candidates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mats.domain.capability.capability import Id
from mats.domain.capability.namespaces import is_named, named_words
from mats.domain.errors import DependencyFailed
from mats.domain.learning.voting import Votes, fuse_votes
from mats.domain.profile.profile import Profile
from mats.domain.ranking.query import Filter
from mats.domain.ranking.ranking import Fusion, Scores, best_first, fuse
from mats.domain.shortlist.explain import pairs_found
from mats.domain.shortlist.shortlist import Candidate
from mats.domain.shortlist.trace import Trace
from mats.domain.text.text import pairs
from mats.domain.trust.echoes import find_echoes
from mats.domain.trust.near_duplicates import NearDuplicates, limit_near_duplicates
from mats.ports import Encoder, Hit, SearchIndex, Vector
from mats.usecases.circuit_breaker import CircuitBreaker
from mats.usecases.query_vectors import QueryVectors
from mats.usecases.recall import Recall
from mats.usecases.stages import Stages, finish

_MOST_NAMESPACES = 20
_UNREAD = "the encoder {} does not read the language of this query: results are found by its words, little by meaning"


def reads_all(text: str) -> bool:
    """The default: an encoder of many languages."""
    return True


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The profiles found, in the order of fusion, with both lists of scores; `terms`: None if lexical search failed.

    `near` has the near-duplicates of each profile that has any, those that were left out included. `named`: they are
    from a namespace that the request names. `votes` are those of remembered requests, which `recall` reads for a caller
    in these audiences.
    """

    profiles: Sequence[Profile]
    near: Mapping[Id, frozenset[Id]]
    terms: Sequence[str] | None
    vector: Vector | None
    bm25: Scores
    cosine: Scores
    named: bool = False
    votes: Votes | None = None
    recall: Recall | None = None
    audiences: frozenset[str] = frozenset()

    def candidates(self, text: str, measured: tuple[Scores, Scores] | None) -> list[Candidate]:
        """The profiles with their measurements; without BM25 scores if measuring failed."""
        bm25, cosine = measured or ({}, self.cosine)
        wanted = pairs(text)
        found = [
            Candidate(
                profile=p,
                bm25=bm25.get(id),
                cosine=cosine.get(id),
                pairs=pairs_found(wanted, p),
                near=self.near.get(id, frozenset()),
                named=self.named,
            )
            for id, p in ((profile.id, profile) for profile in self.profiles)
        ]
        return self.recall.move(found, self.votes, self.audiences) if self.recall and self.votes else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieve:
    """Find the best `k` profiles by fusion of `depth` hits of each side.

    Of near-duplicates and of echoes of the request only some are kept; the next best of the first `window` hits replace
    the others. `unrated` is the trust of an unrated profile beside these, 0 to 100. `reads` tells whether the encoder
    reads the language of a text. `recall` reads the memory; None: there is none. `vectors` are those of earlier
    queries; None: each query is encoded.
    """

    index: SearchIndex
    encoder: Encoder | None
    k: int = 15
    depth: int = 200
    window: int = 60
    unrated: int = 50
    fusion: Fusion = partial(fuse, lexical_share=0.6)
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    reads: Callable[[str], bool] = reads_all
    recall: Recall | None = None
    vectors: QueryVectors | None = None

    def __call__(
        self,
        text: str,
        terms: Sequence[str],
        admitted: Filter,
        stages: Stages,
        trace: Trace,
        *,
        caller: str = "",
    ) -> Retrieved:
        """Search both sides; if stages have threads, lexical search runs beside the encoder. A failed side is left out.

        A request for what a namespace has is answered from the namespaces with all of the words it names, if there are
        any.

        Raises:
            DependencyFailed: neither side answered.
        """
        index, narrowed = self.index, self._narrow(text, admitted, stages, trace)
        named, admitted = narrowed is not None, narrowed or admitted
        encoding = self._encode(text, stages, trace)
        lexical_stage = stages.start("lexical", lambda: index.lexical(terms, admitted, depth=self.depth))
        vector = encoding()
        deadline_ms = stages.clock.elapsed_ms() + stages.budgets.retrieve_ms
        neural_stage = vector and stages.start("neural", lambda: index.neural(vector, admitted, depth=self.depth))
        memory_stage = vector and self.recall and self.recall.start(vector, caller, stages)
        lexical = finish(lexical_stage, trace)
        neural = finish(neural_stage, trace) if neural_stage else None
        if lexical is None and neural is None:
            message = f"the search index did not answer; try again ({'; '.join(trace.faults)})"
            raise trace.unusable or DependencyFailed(message)
        if neural is not None and not neural and lexical:
            trace.degraded.append("neural")  # no entry has a vector of this encoder
        bm25, cosine = _scores(lexical), _scores(neural)
        fused, votes = self.fusion(bm25, cosine), finish(memory_stage, trace) if memory_stage else None
        if self.recall and votes:
            votes = self.recall.complete(votes, best_first(fused)[: self.window], caller, stages, trace)
        ids = best_first(fuse_votes(fused, votes) if votes else fused)
        left_ms = deadline_ms - stages.clock.elapsed_ms()  # one budget for all of retrieval after encoding
        fetching = stages.start("fetch", lambda: self._fetch(text, ids, admitted), budget_ms=left_ms)
        (profiles, near), took_ms = fetching.result()
        trace.took_ms["fetch"] = took_ms
        trace.runs.append(fetching.run(took_ms))
        told = terms if lexical is not None else None
        seen = admitted.audiences
        return Retrieved(profiles, near, told, vector, bm25, cosine, named, votes, self.recall, seen)

    def _narrow(self, text: str, admitted: Filter, stages: Stages, trace: Trace) -> Filter | None:
        """The filter for a request that names namespaces, if there are any with all of its words; else none."""
        asked = named_words(text)
        if not asked or admitted.namespaces or admitted.scope.exact_namespaces:
            return None
        found = finish(stages.start("namespaces", lambda: self.index.namespaces(asked, admitted)), trace)
        named = sorted(space for space in found or () if is_named(space, asked, text))[:_MOST_NAMESPACES]
        if not named:
            return None
        trace.notes.append(f"answered from {', '.join(named)}, which the query names")
        return replace(admitted, scope=replace(admitted.scope, exact_namespaces=frozenset(named)))

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
        return [fetched[id] for id in ids if id in fetched and _is_admitted(fetched[id], admitted)]

    def _encode(self, text: str, stages: Stages, trace: Trace) -> Callable[[], Vector | None]:
        """Start encoding; the function that is returned waits for the vector, which is None if there is none."""
        encoder = self.encoder
        if encoder is None:
            trace.without.append("neural")
            return lambda: None
        known = self.vectors.get(encoder.name, text) if self.vectors else None
        if known is None:
            reply = stages.begin_call("encode", lambda: encoder.encode_query(text), self.breaker, trace)
        if not self.reads(text):
            trace.unread = True
            trace.notes.append(_UNREAD.format(encoder.name))

        def vector() -> Vector | None:
            if known is not None:
                trace.took_ms["encode"] = 0.0
                return known
            made = reply()
            if self.vectors and made is not None:
                self.vectors.put(encoder.name, text, made)
            return made

        return vector

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


def _is_admitted(profile: Profile, admitted: Filter) -> bool:
    """Whether a profile passes the filter, which the index has not applied to one that only the memory names."""
    return (
        admitted.sees(profile.visible_to)
        and admitted.admits_kind(profile.kind)
        and admitted.admits_namespace(profile.namespace)
        and admitted.admits_tags(profile.tags)
    )


def _missing(ids: Sequence[Id], scores: Mapping[Id, float]) -> list[Id]:
    return [id for id in ids if id not in scores]


def _scores(hits: Sequence[Hit] | None) -> dict[Id, float]:
    return {hit.id: hit.score for hit in hits or ()}
