"""The answer to a query: candidates with their measurements, ranked by blended score."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.learning.reliability import NO_COUNTS, Counts, TrustRule, limit_moves
from mats.domain.learning.voting import UsedFor
from mats.domain.profile.profile import Profile
from mats.domain.ranking.blend import Scale, Signal, Verdict, Weights, fallback_weights, intent, shares, weighted_mean
from mats.domain.ranking.query import Query
from mats.domain.shortlist.explain import MatchedWords
from mats.domain.shortlist.trace import Trace
from mats.domain.trust.precedence import apply_precedence, claim_reason, claims, copies


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """One configuration for all kinds, never tuned for one of them or for a data set."""

    scale: Scale
    weights: Weights
    trust: TrustRule


T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One step of a request, and the results that serve it, best first.

    `verdict` is None if the step could not be searched.
    """

    text: str
    verdict: Verdict | None
    results: tuple[Id, ...]


def take_in_turn(lists: Iterable[Sequence[T]]) -> list[T]:
    """From every list in turn its next item that is not yet taken, until all are taken."""
    taken: dict[T, None] = {}
    rests = [iter(items) for items in lists]
    while rests:
        unfinished = []
        for rest in rests:
            for item in rest:
                if item not in taken:
                    taken[item] = None
                    unfinished.append(rest)
                    break
        rests = unfinished
    return list(taken)


_MOST_ALTERNATES = 10
_NOTHING_REPORTED: Mapping[Id, Counts] = MappingProxyType({})
_NAMED = 0.7
"""Least `retrieval` of a candidate whose namespace the query names: it is what was asked for, whatever its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A profile that retrieval found, with its raw measurements; None where a side of the search was off.

    `pairs` counts the neighbouring words of the query that are also neighbours in the profile. `near` has the ids of
    its near-duplicates: candidates, or left out for others. `named`: the query asks what its namespace has. `shift` is
    what remembered requests add to the mixture of its measurements, and `used_for` are those that vote for it.
    """

    profile: Profile
    bm25: float | None
    cosine: float | None
    pairs: int = 0
    near: frozenset[Id] = frozenset()
    named: bool = False
    shift: float = 0.0
    used_for: UsedFor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A candidate with its score, the signals and weights behind it, and its relevance on its own.

    `alternates` are near-duplicates that were left out; each is named by its first near-duplicate in the answer only.
    """

    candidate: Candidate
    score: float
    signals: Mapping[Signal, float]
    weights: Mapping[Signal, float]
    relevance: float
    suspicious: tuple[str, ...] = ()
    why: MatchedWords | None = None
    alternates: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortlist:
    """The answer. `ranked` has every candidate, best first; only the first `shown` are for the caller.

    Those below the query's `min_relevance` follow the others. `parts` is empty if the query does not ask for them.
    """

    query_id: str
    query: Query
    verdict: Verdict
    intent: str | None
    ranked: tuple[Result, ...]
    shown: int
    trace: Trace
    parts: tuple[Part, ...] = ()

    @property
    def results(self) -> tuple[Result, ...]:
        return self.ranked[: self.shown]

    @property
    def uncovered_parts(self) -> tuple[str, ...]:
        """The texts of the parts that nothing serves."""
        return tuple(part.text for part in self.parts if part.verdict is Verdict.NONE)

    @property
    def degraded(self) -> tuple[str, ...]:
        return tuple(self.trace.degraded)

    @property
    def without(self) -> tuple[str, ...]:
        return tuple(self.trace.without)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.trace.notes)

    def degrade(self, part: str, fault: str) -> "Shortlist":
        """The same answer with this part marked as degraded."""
        trace = self.trace
        return replace(self, trace=replace(trace, degraded=[*trace.degraded, part], faults=[*trace.faults, fault]))


def rank(
    candidates: Sequence[Candidate],
    scores: Mapping[Id, float],
    inferred: str | None,
    scoring: Scoring,
    counts: Mapping[Id, Counts] = _NOTHING_REPORTED,
) -> tuple[Result, ...]:
    """Blend the signals of each candidate and sort: highest score first, independent of the input's order.

    Ties: active before deprecated, then by id. Candidates that a truncated reply of the reranker did not score follow
    those that it did: scores with and without its signal cannot be compared. A deprecated candidate never comes before
    its active near-duplicates, nor a copy before its original, nor one that claims a provider before those for which
    operators have verified it. Reported outcomes move a candidate by at most one place for each caller behind them.

    `scores` in [0, 1] and the `inferred` capability type are the reranker's. Without scores, `retrieval` takes the
    weight of `llm`. `counts` has the reported outcomes. Each candidate has an id of its own.
    """
    if not scores:
        scoring = replace(scoring, weights=fallback_weights(scoring.weights))
    measured = [_measure(candidate, scores.get(candidate.profile.id), inferred, scoring) for candidate in candidates]
    scored = sorted(_results(measured, scoring, counts), key=_sort_key)
    if any(counts.values()):
        unreported = sorted(_results(measured, scoring, _NOTHING_REPORTED), key=_sort_key)
        places = {id: place for place, id in enumerate(limit_moves(_ids(unreported), _ids(scored), counts))}
        scored.sort(key=lambda result: places[result.candidate.profile.id])
    twins = [candidate for candidate in candidates if candidate.near]
    copied = copies([twin.profile for twin in twins], unrated=scoring.trust.unrated_trust)
    claimed = claims(candidate.profile for candidate in candidates)
    ranked: dict[Id, Result] = {}
    for result in scored:
        id = result.candidate.profile.id
        reasons = [f"has the description of {original}, nearly word for word" for original in copied.get(id, ())[:1]]
        reasons += [claim_reason(verified) for verified in claimed.get(id, ())[:1]]
        ranked[id] = replace(result, suspicious=(*result.suspicious, *reasons)) if reasons else result
    verified = {id: [profile.id for profile in profiles] for id, profiles in claimed.items()}
    order = apply_precedence(list(ranked), verified, _predecessors(twins, copied))
    return _with_alternates([ranked[id] for id in order])


def _ids(results: Sequence[Result]) -> list[Id]:
    return [result.candidate.profile.id for result in results]


def _sort_key(result: Result) -> tuple[bool, float, bool, Id]:
    profile = result.candidate.profile
    return Signal.LLM not in result.signals, -result.score, profile.lifecycle is Lifecycle.DEPRECATED, profile.id


def _predecessors(candidates: Sequence[Candidate], originals: Mapping[Id, Sequence[Id]]) -> dict[Id, frozenset[Id]]:
    """The ids that each candidate with near-duplicates is ranked behind; without cycles.

    An active candidate is ranked behind active originals only. Of two that are copies of each other, neither is.
    """
    active = {each.profile.id for each in candidates if each.profile.lifecycle is Lifecycle.ACTIVE}
    before: dict[Id, frozenset[Id]] = {}
    for candidate in candidates:
        id = candidate.profile.id
        older = [original for original in originals.get(id, ()) if id not in originals.get(original, ())]
        before[id] = frozenset(active.intersection(older if id in active else candidate.near))
    return before


def _with_alternates(ranked: Sequence[Result]) -> tuple[Result, ...]:
    named = {result.candidate.profile.id for result in ranked}
    completed = []
    for result in ranked:
        left_out = sorted(result.candidate.near - named)
        named.update(left_out)
        completed.append(replace(result, alternates=tuple(left_out[:_MOST_ALTERNATES])) if left_out else result)
    return tuple(completed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """A candidate with its signals except `quality`, the shares and the blend of these, and its relevance."""

    candidate: Candidate
    signals: Mapping[Signal, float]
    shares: Mapping[Signal, float]
    blended: float
    relevance: float


def _measure(candidate: Candidate, llm: float | None, inferred: str | None, scoring: Scoring) -> _Measured:
    profile, scale, weights = candidate.profile, scoring.scale, scoring.weights
    retrieval = scale.retrieval(candidate.bm25, candidate.cosine, candidate.pairs, candidate.shift)
    if candidate.named and retrieval is not None:
        retrieval = _NAMED + (1 - _NAMED) * retrieval
    measured = {
        Signal.LLM: llm,
        Signal.RETRIEVAL: retrieval,
        Signal.BM25: None if candidate.bm25 is None else scale.bm25(candidate.bm25),
        Signal.INTENT: intent(inferred, kind=profile.kind, type_tags=profile.type_tags),
    }
    signals = {signal: value for signal, value in measured.items() if value is not None and signal in weights}
    weighed = shares(signals, weights)
    return _Measured(
        candidate=candidate,
        signals=signals,
        shares=weighed,
        blended=weighted_mean(signals, weighed),
        relevance=llm if llm is not None else retrieval or 0.0,
    )


def _results(measured: Sequence[_Measured], scoring: Scoring, counts: Mapping[Id, Counts]) -> list[Result]:
    """The blended candidates, in their order."""
    trusts = [each.candidate.profile.trust for each in measured]
    reported = any(counts.get(each.candidate.profile.id) for each in measured)
    others = _Others(
        prior=scoring.trust.prior_among(trusts, reported=reported), rated=any(t is not None for t in trusts)
    )
    return [_result(each, scoring, others, counts.get(each.candidate.profile.id, NO_COUNTS)) for each in measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Others:
    """The trust of the unrated in an answer, if it counts there, and whether any candidate is rated."""

    prior: int | None
    rated: bool


def _result(measured: _Measured, scoring: Scoring, others: _Others, counts: Counts) -> Result:
    profile, weights = measured.candidate.profile, scoring.weights
    # Where nobody is rated, equal reliability must leave the order as it is: docs/decisions/0050.
    scaled = measured.relevance if others.rated else measured.blended
    quality = scoring.trust.quality(profile.trust, others.prior, scaled, counts)
    signals, weighed, score = measured.signals, measured.shares, measured.blended
    if quality is not None and Signal.QUALITY in weights:
        with_quality = {**signals, Signal.QUALITY: quality}
        signals = {signal: with_quality[signal] for signal in Signal if signal in with_quality}
        weighed = shares(signals, weights)
        score = weighted_mean(signals, weighed)
    return Result(
        candidate=measured.candidate,
        score=score,
        signals=signals,
        weights=weighed,
        relevance=measured.relevance,
        suspicious=profile.suspicious,
    )


def split_by_relevance(ranked: Sequence[Result], least: float) -> tuple[tuple[Result, ...], tuple[Result, ...]]:
    """The results of at least this relevance, and the others; both in their order."""
    kept = tuple(result for result in ranked if result.relevance >= least)
    return kept, tuple(result for result in ranked if result.relevance < least)


def best_relevance(ranked: Sequence[Result]) -> float | None:
    """The highest relevance, of the reranked ones if there are any; None for an empty list."""
    reranked = [result for result in ranked if Signal.LLM in result.signals]
    return max((result.relevance for result in reranked or ranked), default=None)
