"""Preview of a registration: its profile, its place in the answers to queries, and why others come before it.

Production discovery searches the index with the candidate in it, in a transaction that is rolled back. The reranker is
not called, because that costs a call per query: places are those of an answer without it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from typing import Any

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, ReplyUnusable
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.origin import place, version_of
from mats.domain.profile.profile import Profile
from mats.domain.protocols.descriptors import A2A, MCP
from mats.domain.search.candidate import Result
from mats.domain.search.lookups import Vector
from mats.domain.search.query import Query
from mats.domain.text.words import clip, content_words, first_sentence, split_identifier
from mats.ports import CandidateIndex, Registry, Stored, TrustBook
from mats.usecases.discover import Discover
from mats.usecases.drafts import ProfileMaker
from mats.usecases.rerank import Rerank
from mats.usecases.stages import Budgets

_MAX_QUERIES, _MAX_AHEAD, _MAX_WORDS = 5, 5, 5
_BUDGETS = Budgets(retrieve_ms=20_000)  # No caller waits online


def choose_queries(registration: Registration, profile: Profile) -> list[tuple[str, str]]:
    """The owner's examples, else the writer's, else description, name and tags; each with its origin."""
    for texts, origin in (
        (registration.examples, "its example, left out of its text"),
        (profile.enrichment.positive_examples, "the writer's example, left out of its text"),
    ):
        if texts:
            return [(clip(text, 2_000), origin) for text in texts[:_MAX_QUERIES]]
    derived = {
        "description": first_sentence(profile.source.description, 200) if profile.source else "",
        "name": clip(split_identifier(registration.name), 200),
        "tags": clip(" ".join(tag for tag in registration.tags if tag not in (MCP, A2A)), 200),
    }
    return [(text, f"derived from its {name}") for name, text in derived.items() if content_words(text)]


def without_example(profile: Profile, example: str) -> Profile:
    """The profile as another request of this kind finds it: an example matches its own request word for word."""
    examples = profile.enrichment.positive_examples
    others = tuple(text for text in examples if text != example)
    by_owner = sum(text != example for text in profile.examples_by_owner)
    enrichment = profile.enrichment.model_copy(update={"positive_examples": others})
    return profile.model_copy(update={"enrichment": enrichment, "owner_examples": by_owner})


def reasons(result: Result, own: Result | None) -> Iterator[str]:
    """Why a result comes before another one of the answer: what placed either of them, else what made the scores."""
    if own is None:
        yield "retrieval did not find the candidate"
        return
    one, other, scores = result.candidate, own.candidate, f"score {result.score:.2f} against {own.score:.2f}"
    if one.marks.exact and one.marks.exact > (other.marks.exact or 0):
        yield f"exact match: {one.marks.exact.name.lower()}"
    elif result.score > own.score:
        more, less = ({s: each.weights[s] * value for s, value in each.signals.items()} for each in (result, own))
        gains = sorted(((more.get(s, 0.0) - less.get(s, 0.0), s) for s in more | less), reverse=True)
        yield f"{scores}: {', '.join(f'{signal} {gain:+.2f}' for gain, signal in gains)}"
        mine = own.why.matched if own.why else ()
        if words := [word for word in (result.why.matched if result.why else ()) if word not in mine]:
            yield f"matches {', '.join(words[:_MAX_WORDS])}, which the candidate does not"
    else:
        marks = {
            "operators rated it, and not the candidate": one.profile.is_rated and not other.profile.is_rated,
            "the candidate is new": other.marks.new and not one.marks.new,
            "callers' reports placed it higher": result.moved and not own.moved,
            own.unfit: bool(own.unfit),
            **{f"the candidate {mark}": mark not in other.profile.suspicious for mark in own.suspicious},
        }
        found = [mark for mark, holds in marks.items() if holds]
        yield f"{scores}, but {' and '.join(found)}" if found else f"{scores}; of equals the lower id is first"


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


def _offline(discover: Discover, texts: Iterable[str]) -> Discover:
    """Discovery without a reranker, with the vectors of these queries."""
    vectors, encoded = dict[str, Vector](), discover.encoder
    if encoder := discover.encoder:
        for text in texts:
            try:
                vectors[text] = encoder.encode_query(text)
            except DependencyFailed:
                break  # the answer is marked as degraded
        encoded = _EncodedQueries(encoder.name, encoder.dimension, vectors)
    stages = replace(discover.stages, budgets=_BUDGETS, breakers={})
    return replace(discover, encoder=encoded, rerank=Rerank(reranker=None), stages=stages)


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview registrations. Results are limited to those that the caller may see; the candidate is not."""

    discover: Discover
    index: CandidateIndex
    maker: ProfileMaker
    registry: Registry
    trust: TrustBook

    def __call__(self, registration: Registration, audiences: Collection[str] = ()) -> dict[str, Any]:
        """The preview of a registration for a caller who belongs to these audiences, as JSON.

        The profile and by whom it is described; of each query the place of the candidate without this example, counted
        from 1, and what comes before it; the models that were missing or failed.
        """
        without: list[str] = []
        profile, described_by = self._profile(registration, without)
        indexed = self.index.fetch([profile.id]).get(profile.id)
        today = datetime.combine(datetime.now(UTC), time.max, UTC).isoformat()  # later than any other
        placed_as = {"visible_to": None, "first_registered": indexed.first_registered if indexed else today}
        candidate, tried = profile.model_copy(update=placed_as), choose_queries(registration, profile)
        entries = self._entries([without_example(candidate, query) for query, _ in tried], without)
        discover = _offline(self.discover, [query for query, _ in tried])
        before = self.registry.get([registration.id]).get(registration.id)
        return {
            "id": profile.id,
            "kind": profile.kind,
            "placed": place(version_of(before) if before else None, version_of(registration.item())),
            "profile": {
                "described_by": described_by,
                **profile.enrichment.model_dump(mode="json"),
                **{name: getattr(profile, name) for name in ("trust", "lifecycle", "suspicious")},
                "encoded_text": embedded_text(profile),
            },
            "queries": [
                {"query": query, "origin": origin, **self._try(query, entry, discover, audiences)}
                for (query, origin), entry in zip(tried, entries, strict=True)
            ],
            "without": without,
        }

    def _profile(self, registration: Registration, without: list[str]) -> tuple[Profile, str]:
        """The profile by the writer; the fallback is the raw profile."""
        assigned = self.trust.get([registration.id])[registration.id]
        if self.maker.describes(registration) and self.maker.writer is not None:
            try:
                return self.maker.describe(registration, assigned), self.maker.writer.name
            except (DependencyFailed, ReplyUnusable) as error:
                without.append(f"the writer: {error}")
        return self.maker.raw(registration, assigned), "its owner"

    def _entries(self, profiles: Sequence[Profile], without: list[str]) -> list[Stored]:
        """The profiles with their vectors, if the encoder answers."""
        try:
            if self.maker.encoder is not None:
                vectors = self.maker.encode(profiles)
                return [self.maker.to_stored(*one) for one in zip(profiles, vectors, strict=True)]
            without.append("the encoder: none is configured, so only words are compared")
        except DependencyFailed as error:
            without.append(f"the encoder: {error}")
        return [Stored(profile) for profile in profiles]

    def _try(self, query: str, entry: Stored, discover: Discover, audiences: Collection[str]) -> dict[str, Any]:
        """Search a query with an entry in the index."""
        with self.index.with_candidate(entry) as index:
            over = replace(discover, index=index)
            answer = over.answer(Query(query=query, explain=True), audiences)
        own = next((result for result in answer.ranked if result.id == entry.profile.id), None)
        ahead = answer.ranked[: answer.ranked.index(own)] if own else answer.ranked
        return {
            "looked_at": len(answer.ranked),
            "place": len(ahead) + 1 if own else None,
            "before": [
                {"id": one.id, "place": n, "score": round(one.score, 4), "why": list(reasons(one, own))}
                for n, one in enumerate(ahead[:_MAX_AHEAD], start=1)
            ],
        }


def preview_over(local: LocalSystem) -> Preview:
    stores = local.stores
    return Preview(local.discover, stores.index, local.profile_maker, stores.registry, stores.trust)
