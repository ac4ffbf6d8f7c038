"""Preview of a registration: its profile, its rank for queries, the capabilities that outrank it and why.

Production discovery searches the index with the candidate in it, in a transaction that is rolled back. The reranker is
not called, because that costs a call per query: places are those of an answer without it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, ReplyUnusable
from mats.domain.profile.index_fields import embedded_text, explain
from mats.domain.profile.origin import Placed, place, version_of
from mats.domain.profile.profile import Profile
from mats.domain.ranking.query import Filter, Query
from mats.domain.shortlist.rank import Result, Shortlist
from mats.domain.text.words import query_terms
from mats.local.preview.advice import (
    THRESHOLDS,
    Advice,
    NearDuplicate,
    QueryPreview,
    TriedQuery,
    Weight,
    about_duplicates,
    about_id,
    about_places,
    advice,
    choose_queries,
    competitors,
    near_duplicates,
    without_example,
)
from mats.ports import CandidateIndex, Registry, SearchIndex, Stored, TrustBook, Vector
from mats.usecases.discover import Discover
from mats.usecases.drafts import ProfileMaker
from mats.usecases.rerank import Rerank
from mats.usecases.stages import Budgets, CircuitBreaker

_BUDGETS = Budgets(retrieve_ms=20_000)
"""No caller waits online."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewReport:
    profile: Profile
    placed: Placed
    described_by: str
    encoded: str
    """The text for the encoder."""
    queries: tuple[QueryPreview, ...]
    duplicates: tuple[NearDuplicate, ...]
    advice: tuple[Advice, ...]
    without: tuple[str, ...]
    """The models that were missing or failed, and why."""

    def to_json(self) -> dict[str, Any]:
        profile = self.profile
        return {
            "id": profile.id,
            "kind": profile.kind,
            "placed": self.placed,
            "profile": {
                "described_by": self.described_by,
                **profile.enrichment.model_dump(mode="json"),
                "trust": profile.trust,
                "lifecycle": profile.lifecycle,
                "encoded_text": self.encoded,
            },
            "queries": [_round_all(asdict(one)) for one in self.queries],
            "near_duplicates": [_round_all(asdict(one)) for one in self.duplicates],
            "thresholds": THRESHOLDS,
            "advice": [one._asdict() for one in self.advice],
            "without": self.without,
        }


def _round_all(value: Any) -> Any:
    """JSON with its numbers rounded to four places."""
    if isinstance(value, dict):
        return {key: _round_all(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_round_all(entry) for entry in value]
    return round(value, 4) if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class _EncodedQueries:
    """An encoder with precomputed vectors of some queries: no model is called while the write lock is held."""

    name: str
    dimension: int
    vectors: Mapping[str, Vector]

    def encode_query(self, text: str) -> Vector:
        if text not in self.vectors:
            raise DependencyFailed("the encoder did not answer: try again")
        return self.vectors[text]

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        return [self.vectors.get(text) for text in texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Preview registrations. Competitors are limited to those that the caller may see; the candidate is not."""

    discover: Discover
    index: CandidateIndex
    maker: ProfileMaker
    registry: Registry
    trust: TrustBook

    def __call__(self, registration: Registration, audiences: Collection[str] = ()) -> PreviewReport:
        """The preview of a registration for a caller who belongs to these audiences."""
        without: list[str] = []
        profile, described_by = self._profile(registration, without)
        placed_as = {"visible_to": None, "first_registered": self._first_registered(profile)}
        candidate = self._candidate(profile.model_copy(update=placed_as), without)
        queries = self._queries(choose_queries(registration, profile), candidate, audiences)
        before = self.registry.get([registration.id]).get(registration.id)
        placed = place(version_of(before) if before else None, version_of(registration.item()))
        admitted = Filter(audiences=frozenset(audiences))
        duplicates = near_duplicates(self.index, candidate.profile, candidate.vector, admitted)
        found = (
            *about_id(placed, registration),
            *advice(registration, profile),
            *about_places(queries),
            *about_duplicates(duplicates),
        )
        return PreviewReport(
            profile=profile,
            placed=placed,
            described_by=described_by,
            encoded=embedded_text(profile),
            queries=queries,
            duplicates=duplicates,
            advice=tuple(sorted(found, key=lambda one: list(Weight).index(one.weight))),
            without=tuple(without),
        )

    def _profile(self, registration: Registration, without: list[str]) -> tuple[Profile, str]:
        """The profile by the writer; the fallback is the raw profile."""
        assigned = self.trust.get([registration.id])[registration.id]
        if self.maker.writer is None:
            return self.maker.raw(registration, assigned), "its owner"
        try:
            return self.maker.describe(registration, assigned), self.maker.writer.name
        except (DependencyFailed, ReplyUnusable) as error:
            without.append(f"the writer: {error}")
            return self.maker.raw(registration, assigned), "its owner"

    def _first_registered(self, profile: Profile) -> str:
        """The time of the indexed revision; of a new one, later than that of any other."""
        indexed = self.index.fetch([profile.id]).get(profile.id)
        return indexed.first_registered if indexed else datetime.max.replace(tzinfo=UTC).isoformat()

    def _candidate(self, profile: Profile, without: list[str]) -> Stored:
        """The profile with its vector, if the encoder answers."""
        if self.maker.encoder is None:
            without.append("the encoder: none is configured, so only words are compared")
            return Stored(profile)
        try:
            [vector] = self.maker.encode([profile])
        except DependencyFailed as error:
            without.append(f"the encoder: {error}")
            return Stored(profile)
        return self.maker.to_stored(profile, vector)

    def _queries(
        self, queries: Sequence[TriedQuery], candidate: Stored, audiences: Collection[str]
    ) -> tuple[QueryPreview, ...]:
        """Search each query with the candidate in the index, and with the candidate without that example."""
        discover = self._prepare(queries)
        bare = {query: without_example(candidate.profile, query.text) for query in queries}
        bare_candidates = {
            query: self._candidate(profile, []) for query, profile in bare.items() if profile != candidate.profile
        }
        with self.index.with_candidate(candidate) as index:
            answers = {query: _ask(discover, index, query, audiences) for query in queries}
        unaided = dict(answers)
        for query, bare_candidate in bare_candidates.items():
            with self.index.with_candidate(bare_candidate) as index:
                unaided[query] = _ask(discover, index, query, audiences)
        return tuple(_query_preview(query, answers[query], unaided[query], bare[query]) for query in queries)

    def _prepare(self, queries: Sequence[TriedQuery]) -> Discover:
        """Discovery without a reranker, and with the vectors of these queries."""
        retrieve, vectors = self.discover.retrieve, {}
        if encoder := retrieve.encoder:
            for query in queries:
                try:
                    vectors[query.text] = encoder.encode_query(query.text)
                except DependencyFailed:
                    break  # the answer is marked as degraded
            encoded = _EncodedQueries(encoder.name, encoder.dimension, vectors)
            retrieve = replace(retrieve, encoder=encoded, breaker=CircuitBreaker())
        return replace(
            self.discover,
            retrieve=retrieve,
            rerank=Rerank(reranker=None),
            stages=replace(self.discover.stages, budgets=_BUDGETS),
        )


def preview_over(local: LocalSystem) -> Preview:
    """Previews over the local registry."""
    stores = local.stores
    return Preview(
        discover=local.discover,
        index=stores.index,
        maker=local.profile_maker,
        registry=stores.registry,
        trust=stores.trust,
    )


def _ask(discover: Discover, index: SearchIndex, query: TriedQuery, audiences: Collection[str]) -> Shortlist:
    over = replace(discover, retrieve=replace(discover.retrieve, index=index))
    return over(Query(query=query.text), audiences)


def _query_preview(query: TriedQuery, answer: Shortlist, unaided: Shortlist, bare: Profile) -> QueryPreview:
    own, own_unaided = _own(answer, bare), _own(unaided, bare)
    return QueryPreview(
        query=query.text,
        origin=query.origin,
        place=own[0] if own else None,
        place_unaided=own_unaided[0] if own_unaided else None,
        looked_at=len(answer.ranked),
        verdict=answer.verdict,
        score=own[1].score if own else None,
        signals=own[1].signals if own else {},
        matched=explain(query_terms(query.text), bare).matched,
        outranked_by=competitors(unaided.ranked, bare, query.text),
    )


def _own(answer: Shortlist, profile: Profile) -> tuple[int, Result] | None:
    """The place and the result of a capability, if it is among the ranked."""
    ranked = enumerate(answer.ranked, start=1)
    return next(((place, result) for place, result in ranked if result.id == profile.id), None)
