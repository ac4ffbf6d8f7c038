"""The queries of a preview, the capabilities that outrank the candidate, with the reason, and its near-duplicates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.profile.index_fields import explain
from mats.domain.profile.profile import Profile
from mats.domain.protocols.descriptors import A2A, MCP
from mats.domain.ranking.blend import Signal, Verdict
from mats.domain.ranking.query import Filter
from mats.domain.shortlist.rank import Result
from mats.domain.text.words import clip, content_words, first_sentence, query_terms, split_identifier
from mats.domain.trust.near_duplicates import SIMILARITY, Wording
from mats.ports import SearchIndex, Vector

DUPLICATE_COSINE = 0.95
"""Minimum cosine of near-duplicates.

Chosen by the nearest pairs of 2,400 profiles under all-MiniLM-L6-v2: above it they differ in a number or a word, below
it increasingly in purpose. Not measured for other encoders.
"""
THRESHOLDS = {"cosine": DUPLICATE_COSINE, "overlap": SIMILARITY}
_MAX_QUERIES, _MAX_COMPETITORS, _MAX_DUPLICATES = 5, 5, 5
_SEARCHED = 20
"""Terms of the candidate's text that are searched, and hits of each side of retrieval that are compared."""
_NO_DIFFERENCE = 0.0005


class TriedQuery(NamedTuple):
    """A query and its origin: the owner's or the writer's examples, or derived from the text."""

    text: str
    origin: str


def choose_queries(registration: Registration, profile: Profile) -> list[TriedQuery]:
    """The owner's examples, else the writer's, else the description, the name and the tags."""
    for texts, origin in (
        (registration.examples, "its examples"),
        (profile.enrichment.positive_examples, "the writer's examples"),
    ):
        if texts:
            return [TriedQuery(clip(text, 2_000), origin) for text in texts[:_MAX_QUERIES]]
    description = first_sentence(profile.source.description, 200) if profile.source else ""
    tags = " ".join(tag for tag in registration.tags if tag not in (MCP, A2A))
    derived = [
        TriedQuery(description, "derived from its description"),
        TriedQuery(clip(split_identifier(registration.name), 200), "derived from its name"),
        TriedQuery(clip(tags, 200), "derived from its tags"),
    ]
    return [query for query in derived if content_words(query.text)]


def without_example(profile: Profile, example: str) -> Profile:
    """The profile without one of its positive examples."""
    examples = profile.enrichment.positive_examples
    others = tuple(text for text in examples if text != example)
    by_owner = sum(text != example for text in examples[: profile.owner_examples])
    enrichment = profile.enrichment.model_copy(update={"positive_examples": others})
    return profile.model_copy(update={"enrichment": enrichment, "owner_examples": by_owner})


@dataclass(frozen=True, slots=True, kw_only=True)
class Competitor:
    """A capability that outranks the candidate, and why."""

    id: Id
    place: int
    score: float
    signals: Mapping[Signal, float]
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicate:
    """A near-duplicate of the candidate. The cosine is None if one of the two has no vector.

    `overlap` is the share of words that the texts of the two owners, or their descriptions, have in common, in [0, 1].
    """

    id: Id
    cosine: float | None
    overlap: float
    same_namespace: bool
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPreview:
    """The answer to a query: the candidate's place in it, counted from 1, or None.

    An owner's example matches the candidate word for word; `place_unaided` is the place without that example in the
    profile, as for another request of this kind. `matched` and `outranked_by` are those of that case.
    """

    query: str
    origin: str
    place: int | None
    place_unaided: int | None
    looked_at: int
    verdict: Verdict
    score: float | None
    signals: Mapping[Signal, float]
    matched: tuple[str, ...]
    outranked_by: tuple[Competitor, ...]


def competitors(ranked: Sequence[Result], candidate: Profile, query: str) -> tuple[Competitor, ...]:
    """The first capabilities ranked above the candidate; if it is not ranked, the first of all."""
    place = next((n for n, result in enumerate(ranked) if result.id == candidate.id), None)
    own, before = (ranked[place], ranked[:place]) if place is not None else (None, ranked)
    return tuple(
        Competitor(
            id=result.id,
            place=n,
            score=result.score,
            signals=result.signals,
            why=(
                *_by_signals(result, own),
                *_by_words(result.candidate.profile, candidate, query),
            )
            or ("ranks first by its id",),
        )
        for n, result in enumerate(before[:_MAX_COMPETITORS], start=1)
    )


_ADVANTAGES = {
    Signal.RETRIEVAL: "is nearer in words and meaning",
    Signal.BM25: "has more of the words, or rarer ones",
    Signal.QUALITY: "has more trust",
    Signal.INTENT: "matches the type asked for better",
    Signal.LLM: "was scored higher by the reranker",
}


def _by_signals(result: Result, own: Result | None) -> Iterator[str]:
    """The signals in which a competitor is ahead, largest weighted difference first."""
    if own is None:
        yield "is nearer in words and meaning: retrieval did not find the candidate"
        return
    weight = {signal: result.weights.get(signal, 0.0) for signal in result.signals}
    gains = {s: weight[s] * (result.signals[s] - own.signals.get(s, 0.0)) for s in result.signals}
    for signal in sorted((s for s in gains if gains[s] > _NO_DIFFERENCE), key=lambda s: (-gains[s], s)):
        mine = f"{own.signals[signal]:.2f}" if signal in own.signals else "none"
        yield f"{_ADVANTAGES[signal]} ({signal} {result.signals[signal]:.2f} against {mine})"


def _by_words(competitor: Profile, candidate: Profile, query: str) -> Iterator[str]:
    terms = query_terms(query)
    ours, theirs = explain(terms, candidate), explain(terms, competitor)
    more = [word for word in theirs.matched if word not in ours.matched]
    if more:
        yield f"contains {', '.join(more[:5])}, which the candidate lacks"


def near_duplicates(
    index: SearchIndex, candidate: Profile, vector: Vector | None, admitted: Filter
) -> tuple[NearDuplicate, ...]:
    """Near-duplicates by meaning or by words, nearest first."""
    terms, wording = query_terms(_text(candidate))[:_SEARCHED], Wording.of(candidate)
    found = {hit.id for hit in index.lexical(terms, admitted, depth=_SEARCHED)}
    if vector is not None:
        found |= {hit.id for hit in index.neural(vector, admitted, depth=_SEARCHED)}
    others = index.fetch(found - {candidate.id})
    cosines = index.cosine_of(vector, list(others)) if vector is not None else {}
    compared = [
        NearDuplicate(
            id=id,
            cosine=cosines.get(id),
            overlap=wording.similarity(Wording.of(other)),
            same_namespace=other.namespace == candidate.namespace,
            description=clip(other.source.description if other.source else "", 200),
        )
        for id, other in others.items()
        if admitted.sees(other.visible_to)
    ]
    alike = [one for one in compared if (one.cosine or 0) >= DUPLICATE_COSINE or one.overlap >= SIMILARITY]
    return tuple(sorted(alike, key=lambda one: (-(one.cosine or 0), -one.overlap, one.id))[:_MAX_DUPLICATES])


def _text(profile: Profile) -> str:
    return f"{split_identifier(profile.name)} {profile.source.description if profile.source else ''}"
