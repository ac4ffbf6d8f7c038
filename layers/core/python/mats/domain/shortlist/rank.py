"""The answer to a query: candidates ranked by blended score, and the results that its caller is shown."""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.learning.reliability import NO_COUNTS, Counts, TrustRule, limit_moves
from mats.domain.learning.voting import UsedFor
from mats.domain.profile.index_fields import MatchedWords
from mats.domain.profile.profile import Profile
from mats.domain.ranking.blend import (
    MinRelevance,
    Scale,
    Signal,
    Thresholds,
    Verdict,
    Weights,
    fallback_weights,
    intent,
    shares,
    weighted_mean,
)
from mats.domain.ranking.named import Exactness, order_of_exact
from mats.domain.ranking.query import Query
from mats.domain.shortlist.fitness import Fitness
from mats.domain.shortlist.trace import Trace
from mats.domain.text.fence import spell_out
from mats.domain.text.words import clip
from mats.domain.trust.near_duplicates import is_rated, is_trusted, trust_of
from mats.domain.trust.precedence import apply_precedence, claim_reason, claims, copies

T = TypeVar("T", bound=Hashable)

_MOST_ALTERNATES = 10
_NEAREST, _LONGEST_ID = 3, 100
"""Of an answer with the verdict `none`: results that are shown or named, namespaces to try; characters of an id."""
_NAMED = 0.7
"""Least `retrieval` of a candidate whose namespace the query names: it is what was asked for, whatever its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """One configuration for all kinds, never tuned for one of them or for a data set."""

    scale: Scale
    weights: Weights
    trust: TrustRule


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A profile that retrieval found, with its raw measurements; None where a side of the search was off.

    `exact` tells whether the query is, or has, its id, name or title.
    `pairs` counts the neighbouring words of the query that are also neighbours in the profile. `near` has the ids of
    its near-duplicates: candidates, or left out for others. `named`: the query asks what its namespace has. A
    `newcomer` is unrated and new beside other candidates, and an `echo` repeats the query. `shift` is what remembered
    requests add to the mixture of its measurements, and `used_for` are those that vote for it: it is `lifted` if they
    add anything.
    """

    profile: Profile
    bm25: float | None
    cosine: float | None
    pairs: int = 0
    near: frozenset[Id] = frozenset()
    named: bool = False
    newcomer: bool = False
    echo: bool = False
    exact: Exactness | None = None
    shift: float = 0.0
    lifted: bool = False
    used_for: UsedFor | None = None
    id: Id = field(init=False)  # That of the profile, which computes it anew each time

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.profile.id)


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
    moved: bool = False  # Whether what callers reported places it higher
    unfit: str = ""  # Why its caller cannot call it; empty if nothing is known against it

    @property
    def id(self) -> Id:
        return self.candidate.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One step of a request, and the results that serve it, best first.

    `verdict` is None if the step could not be searched.
    """

    text: str
    verdict: Verdict | None
    results: tuple[Id, ...]


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
    excluded: tuple[tuple[Id, str], ...] = ()  # What the query asked to leave out, with the reason

    @property
    def results(self) -> tuple[Result, ...]:
        return self.ranked[: self.shown]

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
    counts: Mapping[Id, Counts] = MappingProxyType({}),
    *,
    planned: bool = False,
) -> tuple[Result, ...]:
    """Blend the signals of each candidate and sort: highest score first, independent of the input's order.

    Ties: active before deprecated, then by id. Candidates that a truncated reply of the reranker did not score follow
    those that it did: scores with and without its signal cannot be compared. A deprecated candidate never comes before
    its active near-duplicates, nor a copy before its original, nor one that claims a provider before those for which
    operators have verified it. Reported outcomes move a candidate by at most one place for each caller behind them.

    `scores` in [0, 1] and the `inferred` capability type are the reranker's. Without scores, `retrieval` takes the
    weight of `llm`; with `planned` also for each candidate without one, found by the reranker's plan, and these compete
    with the others. `counts` has the reported outcomes. Each candidate has an id of its own.
    """
    if not scores:
        scoring = replace(scoring, weights=fallback_weights(scoring.weights))
    elif planned:
        scoring = replace(scoring, weights={**scoring.weights, Signal.RETRIEVAL: scoring.weights.get(Signal.LLM, 0.0)})
    rated = any(candidate.profile.trust is not None for candidate in candidates)
    reported = any(counts.get(candidate.id) for candidate in candidates)
    measured = [_measure(each, scores.get(each.id), inferred, scoring, planned=planned) for each in candidates]

    def quality(result: Result, of: Counts, prior: int | None) -> float | None:
        # Where nobody is rated, equal reliability must leave the order as it is: docs/decisions/0050.
        scaled = result.relevance if rated else result.score
        return scoring.trust.quality(result.candidate.profile.trust, prior, scaled, of)

    prior = scoring.trust.prior if rated or reported else None  # of the unrated
    scored = [_add_quality(each, quality(each, counts.get(each.id, NO_COUNTS), prior), scoring) for each in measured]
    scored.sort(key=lambda result: _sort_key(result, result.score, planned=planned))
    if reported:
        prior = scoring.trust.prior if rated else None
        without = {each.id: _add_quality(each, quality(each, NO_COUNTS, prior), scoring).score for each in measured}
        before = sorted(measured, key=lambda result: _sort_key(result, without[result.id], planned=planned))
        places = {id: place for place, id in enumerate(limit_moves(_ids(before), _ids(scored), counts))}
        scored.sort(key=lambda result: places[result.id])
        was = {result.id: place for place, result in enumerate(before)}
        scored = [replace(each, moved=each.moved or places[each.id] < was[each.id]) for each in scored]
    placed = _place_exact(scored, scoring.trust.unrated_trust)
    ranked = _in_precedence(placed if scores else _let_established_lead(placed, scoring), candidates, scoring)
    return tuple(sorted(ranked, key=lambda result: result.candidate.exact is not Exactness.TAUGHT))


def _measure(
    candidate: Candidate, llm: float | None, inferred: str | None, scoring: Scoring, *, planned: bool
) -> Result:
    """A candidate with its signals except `quality`."""
    profile, scale = candidate.profile, scoring.scale
    retrieval = scale.retrieval(candidate.bm25, candidate.cosine, candidate.pairs, candidate.shift)
    if (candidate.named or (candidate.exact or 0) >= Exactness.NAME) and retrieval is not None:
        retrieval = _NAMED + (1 - _NAMED) * retrieval
    measured = {
        Signal.LLM: llm,
        Signal.RETRIEVAL: None if planned and llm is not None else retrieval,
        Signal.BM25: None if candidate.bm25 is None else scale.bm25(candidate.bm25),
        Signal.INTENT: intent(inferred, kind=profile.kind, type_tags=profile.type_tags)
        if inferred is not None
        else None,
    }
    signals = {signal: value for signal, value in measured.items() if value is not None and signal in scoring.weights}
    weighed, relevance = shares(signals, scoring.weights), llm if llm is not None else retrieval or 0.0
    return Result(
        candidate=candidate,
        score=weighted_mean(signals, weighed),
        signals=signals,
        weights=weighed,
        relevance=max(relevance, _NAMED) if candidate.exact is Exactness.TAUGHT else relevance,
        suspicious=profile.suspicious,
        moved=candidate.lifted,
    )


def _add_quality(result: Result, quality: float | None, scoring: Scoring) -> Result:
    if quality is None or Signal.QUALITY not in scoring.weights:
        return result
    with_quality = {**result.signals, Signal.QUALITY: quality}
    signals = {signal: with_quality[signal] for signal in Signal if signal in with_quality}
    weighed = shares(signals, scoring.weights)
    return replace(result, score=weighted_mean(signals, weighed), signals=signals, weights=weighed)


def _sort_key(result: Result, score: float, *, planned: bool) -> tuple[bool, float, bool, Id]:
    deprecated = result.candidate.profile.lifecycle is Lifecycle.DEPRECATED
    return not planned and Signal.LLM not in result.signals, -score, deprecated, result.id


def _ids(results: Iterable[Result]) -> tuple[Id, ...]:
    return tuple(result.id for result in results)


_AMONG = 2  # Places before which an exact match within a longer query need not be


def _place_exact(scored: Sequence[Result], unrated: int) -> Sequence[Result]:
    """The results with exact matches first, and those within a longer query among the first three.

    Names and titles are free: one does not pass what has more trust and a higher score. An id is its owner's alone.
    """
    exact = [(each.candidate.exact, each.candidate.profile, each) for each in scored if each.candidate.exact]
    exact.sort(key=lambda one: order_of_exact(one[0], one[1], unrated=unrated))
    ordered, start = list(scored), 0
    for kind, profile, result in exact:
        trust = 100 if kind is Exactness.ID else trust_of(profile, unrated)
        first = max(start, _AMONG) if kind is Exactness.CONTAINS else start
        before = ordered.index(result)
        passed = (n for n in range(first, before) if trust_of(ordered[n].candidate.profile, unrated) <= trust)
        place = next(passed, before)
        ordered.insert(place, ordered.pop(before))
        start = place + 1 if kind is not Exactness.CONTAINS else start
    return ordered


_OLDER, _OLDER_IN_MEANING, _RATED, _RATED_BESIDE_NEW = 0.7, 0.4, 0.9, 0.3
"""Share of the mixture of an unrated or new result from which on an older or rated one leads it; the second where the
cosine is at least as high, the last beside a newcomer."""
_ECHOED = 0.3  # The same where the new or unrated result repeats the query


def _let_established_lead(scored: Sequence[Result], scoring: Scoring) -> Sequence[Result]:
    """The results with the best rated one, then the best older one, before what is unrated and hardly better, or new.

    A text can be made like any request, being there before and the trust of an operator cannot: docs/decisions/0095.
    """
    order, unrated = list(scored), scoring.trust.unrated_trust
    for rated in (True, False):
        established = (
            n
            for n, each in enumerate(order)
            if (is_trusted(each.candidate.profile, unrated) if rated else not each.candidate.newcomer)
        )
        if at := next(established, 0):
            leads = (n for n in range(at) if _leads(order[at], order[n], scoring, rated=rated))
            order.insert(next(leads, at), order.pop(at))
    return order


def _leads(one: Result, other: Result, scoring: Scoring, *, rated: bool) -> bool:
    """Whether an older result, or a rated one, comes before another that has a higher score."""
    established, beside = one.candidate, other.candidate
    if is_rated(beside.profile) or beside.exact in (Exactness.ID, Exactness.TAUGHT):
        return False
    if beside.newcomer:
        nearer = (established.cosine or 0.0) >= (beside.cosine or 0.0)
        least = _RATED_BESIDE_NEW if rated else _ECHOED if beside.echo else _OLDER_IN_MEANING if nearer else _OLDER
    else:
        least = _ECHOED if beside.echo else _RATED
    ours, theirs = (scoring.scale.mix(each.bm25, each.cosine, each.pairs) or 0.0 for each in (established, beside))
    return ours + established.shift >= least * (theirs + beside.shift)


def _in_precedence(scored: Sequence[Result], candidates: Sequence[Candidate], scoring: Scoring) -> tuple[Result, ...]:
    """The results with copies and claimants moved behind others and marked, and with their alternates."""
    twins = [candidate for candidate in candidates if candidate.near]
    unrated, profiles = scoring.trust.unrated_trust, {candidate.id: candidate.profile for candidate in candidates}
    copied = copies([twin.profile for twin in twins], unrated=unrated)
    claimed = claims(profiles.values(), unrated=unrated)
    verified = {id: [profile.id for profile in profiles] for id, profiles in claimed.items()}
    active = {each.id for each in twins if each.profile.lifecycle is Lifecycle.ACTIVE}
    # an active candidate is ranked behind its active originals only, which makes no cycles
    before = {
        each.id: active.intersection(copied.get(each.id, ()) if each.id in active else each.near) for each in twins
    }
    results = {result.id: result for result in scored}
    named, ranked = set(results), list[Result]()
    for id in apply_precedence(list(results), verified, before):
        result = results[id]
        trust = trust_of(profiles[id], unrated)  # who was first says nothing about whose text it is
        rated = [other for other in copied.get(id, ()) if trust_of(profiles[other], unrated) > trust]
        reasons = [f"has the description of {original}, nearly word for word" for original in rated[:1]]
        reasons += [claim_reason(other) for other in claimed.get(id, ())[:1]]
        left_out = sorted(result.candidate.near - named)
        named.update(left_out)
        if reasons or left_out:
            suspicious, alternates = (*result.suspicious, *reasons), tuple(left_out[:_MOST_ALTERNATES])
            result = replace(result, suspicious=suspicious, alternates=alternates)
        ranked.append(result)
    return tuple(ranked)


_GRADES = (Verdict.NONE, Verdict.WEAK, Verdict.MATCH)


def place_unfit(ranked: Sequence[Result], fitness: Fitness, thresholds: Thresholds) -> tuple[Result, ...]:
    """The results, judged, with each unfit one behind the last fit one that is as good a match; exact ones are better.

    The others keep their order.
    """
    order = [replace(each, unfit=fitness.because(each.candidate.profile)) for each in ranked]

    def grade(result: Result) -> int:
        exact = result.candidate.exact in (Exactness.ID, Exactness.TAUGHT)
        return len(_GRADES) if exact else _GRADES.index(thresholds.verdict(result.relevance))

    for result in [each for each in reversed(order) if each.unfit]:
        place, own = order.index(result), grade(result)
        equals = [n for n in range(place + 1, len(order)) if not order[n].unfit and grade(order[n]) >= own]
        if equals:
            order.insert(equals[-1], order.pop(place))
    return tuple(order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The texts of a request's parts, which of them each candidate serves, by number, and which could be searched."""

    texts: Sequence[str]
    served: Mapping[Id, Sequence[int]]
    answered: Sequence[bool]

    def of(self, number: int, results: Sequence[Result]) -> list[Result]:
        return [result for result in results if number in self.served.get(result.id, ())]

    def in_turn(self, results: Sequence[Result], *, best_first: bool) -> tuple[Result, ...]:
        """Those of every part in turn, in the order of the parts or of their best; then those that serve none."""
        by_id = {result.id: result for result in results}
        lists = [_ids(self.of(number, results)) for number in range(len(self.texts))]
        if best_first:
            order = list(by_id)
            lists = sorted(filter(None, lists), key=lambda each: order.index(each[0]))
        return tuple(by_id[id] for id in take_in_turn([*lists, _ids(results)]))


def present(
    ranked: Sequence[Result],
    thresholds: Thresholds,
    steps: Steps,
    *,
    limit: int,
    min_relevance: MinRelevance | None,
    unread: bool,
) -> tuple[Verdict, tuple[Result, ...], int, tuple[Part, ...]]:
    """The verdict, the results with those to be shown first, in which parts take turns, how many, and the parts.

    `ranked` is best first, and `steps` are the parts of the request, or the request as the only one. If `unread`, the
    encoder does not read the language, to which a low or a high relevance may be due.
    """

    def verdict_on(results: Sequence[Result]) -> Verdict:
        verdict = thresholds.verdict(best_relevance(results))
        exact = any((result.candidate.exact or 0) >= Exactness.NAME for result in results)
        return Verdict.WEAK if unread and results and not exact else verdict

    doubted = unread and thresholds.verdict(best_relevance(ranked)) is Verdict.NONE
    weak = 0.0 if doubted else thresholds.weak
    least = weak if min_relevance == "weak" else min_relevance or 0.0
    kept = [result for result in ranked if result.relevance >= least]
    if min_relevance == "weak" and not kept:
        kept = list(ranked[:_NEAREST])
    in_turn = steps.in_turn(kept, best_first=True) if len(steps.texts) > 1 else kept
    chosen = frozenset(_ids(in_turn[:limit]))
    shown = [result for result in kept if result.id in chosen]
    rest = [result for result in kept if result.id not in chosen]
    cut = [result for result in ranked if not any(result is one for one in kept)]
    parts = tuple(
        Part(
            text=text,
            verdict=verdict_on(steps.of(number, ranked)) if steps.answered[number] else None,
            results=_ids(steps.of(number, shown)),
        )
        for number, text in enumerate(steps.texts)
    )
    return verdict_on(ranked), (*shown, *rest, *cut), len(shown), parts


def note_on_moved(shown: Sequence[Result]) -> list[str]:
    """What of an answer callers' reports have placed higher; ids as in `note_on_none`."""
    moved = [_quote(result.id) for result in shown if result.moved][:_NEAREST]
    return [f"placed higher by what callers reported or operators taught: {', '.join(moved)}"] if moved else []


def _quote(id: Id) -> str:
    return json.dumps(clip(spell_out(id), _LONGEST_ID), ensure_ascii=False)


def note_on_none(ranked: Sequence[Result]) -> str:
    """The nearest results, for an answer with the verdict `none`, and advice on what to try.

    Ids are spelled out and quoted: a note is in the words of mats, and names are in those of their owners.
    """
    ids = [_quote(result.id) for result in ranked[:_NEAREST]]
    spaces = list(dict.fromkeys(result.candidate.profile.namespace for result in ranked))[:_NEAREST]
    return (
        f"nearest, probably not it: {', '.join(ids)}; try other words, or one of the namespaces here, such as "
        f"{', '.join(spaces)}"
    )


def best_relevance(ranked: Sequence[Result]) -> float | None:
    """The highest relevance, of the reranked ones if there are any; None for an empty list."""
    reranked = [result for result in ranked if Signal.LLM in result.signals]
    return max((result.relevance for result in reranked or ranked), default=None)


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
