"""What a registration would be worth before it is registered: its profile, who finds it, who stands before it and why.

The real discovery is run over the real index with the candidate laid over it (`usecases/overlay.py`); nothing is
written. The judge is not asked: it costs a call for each query, so places are those of an answer without it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mats.domain.advice import Advice, Weight, advice, content_words, overlap
from mats.domain.capability import Id
from mats.domain.descriptors import A2A, MCP
from mats.domain.errors import DependencyFailed, ReplyUnusable
from mats.domain.explain import explain
from mats.domain.placement import Placed, place, version_of
from mats.domain.profile import Profile, Recipe, embedded_text, profile_of
from mats.domain.query import Filter, Query
from mats.domain.ranking import Signal, Verdict
from mats.domain.registration import Registration
from mats.domain.shortlist import Result, Shortlist
from mats.domain.text import clip, first_sentence, query_terms, split_identifier
from mats.ports import Registry, SearchIndex, Stored, TrustBook, Vector
from mats.usecases.circuit_breaker import CircuitBreaker
from mats.usecases.discover import Discover
from mats.usecases.enrich import Enrich
from mats.usecases.overlay import Overlay
from mats.usecases.rerank import Rerank
from mats.usecases.stages import Budgets

TWIN_COSINE = 0.95
"""Of two profiles, from which on they are taken for near-duplicates.

Read off the nearest pairs of 2,400 profiles under all-MiniLM-L6-v2: above it they differ in a number or a word, below
it, more and more, in what they are for. Other encoders have other cosines; there it is a guess.
"""
TWIN_OVERLAP = 0.7
"""Share of stems in common, from which on two texts say the same."""
_QUERIES, _RIVALS, _TWINS = 5, 5, 5
_LOOKED_AT = 20
_PATIENT = Budgets(encode_ms=10_000, retrieve_ms=20_000)
"""Nobody waits online."""


class Asked(NamedTuple):
    """A query to try, and where it is from: the owner's or a writer's examples, or derived of the text."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A capability that stands before the candidate, and what makes the difference."""

    id: Id
    place: int
    score: float
    signals: Mapping[Signal, float]
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """What a query would find: the candidate's place among the results, counted from 1, if it is among them.

    An example of the owner's finds it by its own words; `unaided` is the place it would have if the example were not
    written there, which is how another request of the kind would fare. Words matched and rivals are those of that case.
    """

    query: str
    origin: str
    place: int | None
    unaided: int | None
    looked_at: int
    verdict: Verdict
    score: float | None
    signals: Mapping[Signal, float]
    matched: tuple[str, ...]
    rivals: tuple[Rival, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A capability that is much like the candidate. The cosine is None where one of the two has no vector."""

    id: Id
    cosine: float | None
    overlap: float
    same_owner: bool
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """All that can be said of a registration before it is made."""

    profile: Profile
    placed: Placed
    described_by: str
    encoded: str
    """The text an encoder reads."""
    prospects: tuple[Prospect, ...]
    twins: tuple[Twin, ...]
    advice: tuple[Advice, ...]
    without: tuple[str, ...]
    """What could not be asked, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """Say what would become of a registration. Competitors are those that the caller may see."""

    discover: Discover
    enrich: Enrich
    registry: Registry
    trust: TrustBook

    def __call__(self, registration: Registration, audiences: Collection[str] = ()) -> Outlook:
        """The outlook of a registration to a caller who belongs to these audiences.

        Raises:
            DependencyFailed: the index or a store did not answer.
        """
        without: list[str] = []
        profile, described_by = self._profile(registration, without)
        vector = self._vector(profile, without)
        admitted = Filter(audiences=frozenset(audiences))
        overlay = Overlay.over(self.discover.retrieve.index, Stored(profile, vector), admitted)
        prospects = tuple(self._prospect(asked, overlay, audiences) for asked in queries(registration, profile))
        before = self.registry.get([registration.id]).get(registration.id)
        placed = place(version_of(before) if before else None, version_of(registration.item()))
        twins = self._twins(overlay.profile, vector, admitted)
        mended = (*_about_id(placed, registration), *advice(registration, profile), *_about(prospects, twins))
        return Outlook(
            profile=profile,
            placed=placed,
            described_by=described_by,
            encoded=embedded_text(profile),
            prospects=prospects,
            twins=twins,
            advice=tuple(sorted(mended, key=lambda one: list(Weight).index(one.weight))),
            without=tuple(without),
        )

    def _profile(self, registration: Registration, without: list[str]) -> tuple[Profile, str]:
        """The profile as the writer would make it, if there is one that answers, else as its owner wrote it."""
        trust = self.trust.get([registration.id]).get(registration.id)
        encoder = self.discover.retrieve.encoder
        raw = profile_of(
            registration, trust=trust, origin=Recipe(encoder=encoder.name if encoder else "").origin(registration)
        )
        if self.enrich.writer is None:
            return raw, "its owner"
        try:
            written = self.enrich.preview(registration)[1]
        except (DependencyFailed, ReplyUnusable) as error:
            without.append(f"the writer: {error}")
            return raw, "its owner"
        return written.model_copy(update={"trust": trust}), self.enrich.writer.name

    def _vector(self, profile: Profile, without: list[str]) -> Vector | None:
        if self.discover.retrieve.encoder is None:
            without.append("the encoder: there is none, so only words are compared")
            return None
        try:
            return self.discover.retrieve.encoder.encode_documents([embedded_text(profile)])[0]
        except DependencyFailed as error:
            without.append(f"the encoder: {error}")
            return None

    def _prospect(self, asked: Asked, overlay: Overlay, audiences: Collection[str]) -> Prospect:
        terms = query_terms(asked.text)
        overlay.scores.learn(terms)
        bare = without_example(overlay.profile, asked.text)
        answer = unaided = self._answer(asked, overlay, audiences)
        if bare != overlay.profile:
            unaided = self._answer(asked, replace(overlay, profile=bare, vector=self._vector(bare, [])), audiences)
        own, without = _own(answer, bare.id), _own(unaided, bare.id)
        before = unaided.ranked[: without[0] - 1] if without else unaided.ranked
        rivals = [
            _rival(place, result, without[1] if without else None, bare, terms)
            for place, result in enumerate(before[:_RIVALS], start=1)
        ]
        return Prospect(
            query=asked.text,
            origin=asked.origin,
            place=own[0] if own else None,
            unaided=without[0] if without else None,
            looked_at=len(answer.ranked),
            verdict=answer.verdict,
            score=own[1].score if own else None,
            signals=own[1].signals if own else {},
            matched=explain(terms, bare).matched,
            rivals=tuple(rivals),
        )

    def _answer(self, asked: Asked, overlay: Overlay, audiences: Collection[str]) -> Shortlist:
        stages = replace(self.discover.stages, budgets=_PATIENT)
        retrieve = replace(self.discover.retrieve, index=overlay, breaker=CircuitBreaker())
        ask = replace(self.discover, retrieve=retrieve, rerank=Rerank(reranker=None), stages=stages)
        return ask(Query(query=asked.text), audiences)

    def _twins(self, profile: Profile, vector: Vector | None, admitted: Filter) -> tuple[Twin, ...]:
        """Those that are alike by meaning or by words, most alike first."""
        index: SearchIndex = self.discover.retrieve.index
        terms = query_terms(_says(profile))[:_LOOKED_AT]
        found = {hit.id for hit in index.lexical(terms, admitted, depth=_LOOKED_AT)}
        if vector is not None:
            found |= {hit.id for hit in index.neural(vector, admitted, depth=_LOOKED_AT)}
        others = index.fetch(found - {profile.id})
        cosines = index.cosine_of(vector, list(others)) if vector is not None else {}
        twins = [
            Twin(
                id=id,
                cosine=cosines.get(id),
                overlap=overlap(_says(profile), _says(other)),
                same_owner=other.namespace == profile.namespace,
                description=clip(other.source.description if other.source else "", 200),
            )
            for id, other in others.items()
            if admitted.sees(other.visible_to)
        ]
        alike = [twin for twin in twins if (twin.cosine or 0) >= TWIN_COSINE or twin.overlap >= TWIN_OVERLAP]
        return tuple(sorted(alike, key=lambda twin: (-(twin.cosine or 0), -twin.overlap, twin.id))[:_TWINS])


def _own(answer: Shortlist, id: Id) -> tuple[int, Result] | None:
    """The place and the result of a capability, if it is among the ranked."""
    ranked = enumerate(answer.ranked, start=1)
    return next(((place, result) for place, result in ranked if result.candidate.profile.id == id), None)


def without_example(profile: Profile, example: str) -> Profile:
    """The profile as it would be if one positive example were not written there."""
    kept = tuple(text for text in profile.enrichment.positive_examples if text != example)
    return profile.model_copy(update={"enrichment": profile.enrichment.model_copy(update={"positive_examples": kept})})


def queries(registration: Registration, profile: Profile) -> list[Asked]:
    """What to try: the owner's examples, else the writer's, else what its own text would be asked for with."""
    for texts, origin in (
        (registration.examples, "its examples"),
        (profile.enrichment.positive_examples, "the writer's examples"),
    ):
        if texts:
            return [Asked(clip(text, 2_000), origin) for text in texts[:_QUERIES]]
    derived = [
        Asked(
            first_sentence(profile.source.description, 200) if profile.source else "", "derived from its description"
        ),
        Asked(clip(split_identifier(registration.name), 200), "derived from its name"),
        Asked(clip(" ".join(tag for tag in registration.tags if tag not in (MCP, A2A)), 200), "derived from its tags"),
    ]
    return [asked for asked in derived if content_words(asked.text)]


def _says(profile: Profile) -> str:
    return f"{split_identifier(profile.name)} {profile.source.description if profile.source else ''}"


def _rival(place: int, result: Result, own: Result | None, candidate: Profile, terms: Sequence[str]) -> Rival:
    profile = result.candidate.profile
    why = (*_by_signals(result, own), *_by_words(profile, candidate, terms))
    return Rival(
        id=profile.id, place=place, score=result.score, signals=result.signals, why=why or ("stands there by its id",)
    )


_SAID = {
    Signal.RETRIEVAL: "is nearer in words and meaning",
    Signal.BM25: "has more of the words, or rarer ones",
    Signal.QUALITY: "is trusted more by operators",
    Signal.INTENT: "is more of the type asked for",
    Signal.LLM: "was judged better",
}


def _by_signals(result: Result, own: Result | None) -> Iterator[str]:
    """The signals that speak for a rival, by how much they weigh."""
    if own is None:
        yield "is nearer in words and meaning: the candidate is not among those looked at"
        return
    weight = {signal: result.weights.get(signal, 0.0) for signal in result.signals}
    gains = {s: weight[s] * (result.signals[s] - own.signals.get(s, 0.0)) for s in result.signals}
    for signal in sorted((s for s in gains if gains[s] > 0.0005), key=lambda s: (-gains[s], s)):
        mine = f"{own.signals[signal]:.2f}" if signal in own.signals else "none"
        yield f"{_SAID[signal]} ({signal} {result.signals[signal]:.2f} against {mine})"


def _by_words(rival: Profile, candidate: Profile, terms: Sequence[str]) -> Iterator[str]:
    ours, theirs = explain(terms, candidate), explain(terms, rival)
    more = [word for word in theirs.matched if word not in ours.matched]
    if more:
        yield f"says {', '.join(more[:5])}, which the candidate does not"


def _about_id(placed: Placed, registration: Registration) -> Iterator[Advice]:
    if placed is Placed.OTHER_KIND:
        yield Advice(
            "taken id",
            Weight.MUST,
            f"{registration.id} is registered as another kind",
            "choose another name, or remove it first",
        )
    elif placed is Placed.CHANGED:
        yield Advice(
            "replaces",
            Weight.COULD,
            f"{registration.id} is registered and would be replaced",
            "make sure that it is yours",
        )


def _about(prospects: Sequence[Prospect], twins: Sequence[Twin]) -> Iterator[Advice]:
    """What the queries and the twins tell."""
    for prospect in prospects:
        if prospect.unaided == 1:
            continue
        where = f"at place {prospect.unaided}" if prospect.unaided else f"not among the first {prospect.looked_at}"
        aided = ", but for being written there word for word" if prospect.place != prospect.unaided else ""
        lacking = [word for word in query_terms(prospect.query) if word not in prospect.matched]
        say = f"say {', '.join(lacking[:5])} in its description" if lacking else "say what sets it apart from others"
        weight = Weight.COULD if prospect.unaided and prospect.unaided <= 3 else Weight.SHOULD
        yield Advice("outranked", weight, f"{clip(prospect.query, 80)!r} finds it {where}{aided}", say)
    for twin in twins:
        if twin.same_owner:
            fix = "register one of the two, or say in both what the other is for"
        else:
            fix = "if it is the same thing, register it once; if not, say what sets it apart"
        near = "" if twin.cosine is None else f"cosine {twin.cosine:.2f}, "
        what = f"it is much like {twin.id} ({near}{twin.overlap:.0%} of the words in common)"
        yield Advice("near-duplicate", Weight.SHOULD, what, fix)
