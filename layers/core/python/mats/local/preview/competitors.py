"""Capabilities that outrank a candidate, with the reason, and its near-duplicates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.ranking.blend import Signal
from mats.domain.ranking.query import Filter
from mats.domain.shortlist.explain import explain
from mats.domain.shortlist.rank import Result
from mats.domain.text.words import clip, query_terms, split_identifier
from mats.domain.trust.near_duplicates import SIMILARITY, Wording
from mats.ports import SearchIndex, Vector

DUPLICATE_COSINE = 0.95
"""Minimum cosine of near-duplicates.

Chosen by the nearest pairs of 2,400 profiles under all-MiniLM-L6-v2: above it they differ in a number or a word, below
it increasingly in purpose. Not measured for other encoders.
"""
THRESHOLDS = {"cosine": DUPLICATE_COSINE, "overlap": SIMILARITY}
_MAX_COMPETITORS, _MAX_DUPLICATES = 5, 5
_SEARCHED = 20
"""Terms of the candidate's text that are searched, and hits of each side of retrieval that are compared."""
_NO_DIFFERENCE = 0.0005


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


def competitors(ranked: Sequence[Result], candidate: Profile, query: str) -> tuple[Competitor, ...]:
    """The first capabilities ranked above the candidate; if it is not ranked, the first of all."""
    place = next((n for n, result in enumerate(ranked) if result.candidate.profile.id == candidate.id), None)
    own, before = (ranked[place], ranked[:place]) if place is not None else (None, ranked)
    return tuple(
        Competitor(
            id=result.candidate.profile.id,
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
