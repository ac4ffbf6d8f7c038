"""The answer to a request: ranked results, the verdict on them, and those that its caller is shown."""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TypeVar

from mats.domain.capability.capability import Id
from mats.domain.profile.index_fields import explain
from mats.domain.profile.profile import Profile
from mats.domain.search.blend import Opinion, Scoring, best_relevance, blend
from mats.domain.search.candidate import Candidate, Result
from mats.domain.search.query import Query
from mats.domain.search.trace import Trace
from mats.domain.search.verdict import Thresholds, Verdict
from mats.domain.text.fence import spell_out
from mats.domain.text.words import clip, query_terms

T = TypeVar("T", bound=Hashable)

_MOST_ALTERNATES = 10
NEAREST = "nearest, probably not it:"  # Of a note on such an answer, its first words
_BESIDE = 0.06  # Share of the best relevance from which on a result is worth reading beside it
_NEAREST, _LONGEST_ID = 3, 100
"""Of an answer with the verdict `none`: results that are shown or named, namespaces to try; characters of an id."""


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
    excluded: tuple[tuple[Id, str], ...] = ()  # What the query asked to leave out, nearest first, with the reason

    @property
    def results(self) -> tuple[Result, ...]:
        return self.ranked[: self.shown]

    @property
    def withheld(self) -> tuple[Profile, ...]:
        """Those of the results that their flags keep from agents."""
        return tuple(result.candidate.profile for result in self.results if result.candidate.profile.withheld)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The texts of a request's parts, which of them each candidate serves, by number, and which could be searched."""

    texts: Sequence[str]
    served: Mapping[Id, Sequence[int]]
    answered: Sequence[bool]
    elsewhere: Sequence[Set[Id]] = ()  # Of each text, what is of other products than it says that it is to be done in

    def of(self, number: int, results: Sequence[Result]) -> list[Result]:
        return [result for result in results if number in self.served.get(result.id, ())]

    def least_best(self, results: Sequence[Result]) -> float:
        """The best relevance for the step that is served least well; 0 if none is served."""
        best = (best_relevance(self.of(number, results)) for number in range(len(self.texts)))
        return min((each for each in best if each is not None), default=0.0)

    def in_turn(self, results: Sequence[Result]) -> Sequence[Result]:
        """Those of every step in turn, in the order of their best; then those that serve none."""
        if len(self.texts) == 1:
            return results
        by_id = {result.id: result for result in results}
        order = list(by_id)
        lists = [_ids(self.of(number, results)) for number in range(len(self.texts))]
        lists = sorted(filter(None, lists), key=lambda each: order.index(each[0]))
        return tuple(by_id[id] for id in take_in_turn([*lists, order]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The answer after the blend: its results, best first, and what they were ranked by."""

    results: Sequence[Result]
    scoring: Scoring
    thresholds: Thresholds
    reranked: bool  # A reranker scored them
    opinion: Opinion = Opinion()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, candidates: Sequence[Candidate], opinion: Opinion, scoring: Scoring, thresholds: Thresholds
    ) -> "Ranked":
        """The candidates, blended with the reranker's opinion on them."""
        results, reranked = blend(candidates, opinion, scoring), bool(opinion.scores)
        used = scoring if reranked else scoring.without_reranker()
        return cls(results=results, scoring=used, thresholds=thresholds, reranked=reranked, opinion=opinion)

    def with_results(self, results: Iterable[Result], *notes: str) -> "Ranked":
        return replace(self, results=tuple(results), notes=(*self.notes, *notes))


def present(
    query_id: str,
    query: Query,
    ranked: Ranked,
    steps: Steps,
    excluded: Mapping[Id, str],
    *,
    limit: int,
    intent: str | None,
    trace: Trace,
) -> Shortlist:
    """The answer: the verdict, and the results with those to be shown first, in which steps take turns.

    `steps` are those of the request, or the request as the only one. If the encoder does not read the language, a low
    or a high relevance may be due to that.
    """
    results, thresholds, foreign = ranked.results, ranked.thresholds, trace.foreign

    def verdict_on(results: Sequence[Result], elsewhere: Set[Id]) -> Verdict:
        marks = [result.candidate.marks for result in results if result.id not in elsewhere]
        named = any(each.exact or (each.quoted and not each.new) for each in marks)
        verdict = thresholds.verdict(best_relevance(results))
        if named:
            return verdict
        if foreign and results:
            return Verdict.WEAK
        within = thresholds.verdict(best_relevance([result for result in results if result.id not in elsewhere]))
        return Verdict.WEAK if verdict is Verdict.MATCH and within is not verdict else verdict

    doubted = foreign and thresholds.verdict(best_relevance(results)) is Verdict.NONE
    weak = 0.0 if doubted else max(thresholds.weak, _BESIDE * steps.least_best(results))
    least = weak if query.min_relevance == "weak" else query.min_relevance or 0.0
    kept = [result for result in results if result.relevance >= least]
    if query.min_relevance == "weak" and not kept:
        kept = list(results[:_NEAREST])
    chosen = frozenset(each.id for each in steps.in_turn(kept)[:limit])
    shown = [result for result in kept if result.id in chosen]
    rest = [result for result in kept if result.id not in chosen]
    cut = [result for result in results if result.relevance < least and result not in kept]
    verdict = verdict_on(results, frozenset.intersection(*map(frozenset, steps.elsewhere or [frozenset[Id]()])))
    trace.thresholds = thresholds
    trace.notes += (*ranked.notes, *note_on_moved(shown))
    if verdict is Verdict.NONE and results:
        trace.notes.append(note_on_none(results))
    placed = name_alternates([*shown, *rest, *cut])
    if query.explain:
        terms = query_terms(query.text)
        placed = [replace(result, why=explain(terms, result.candidate.profile)) for result in placed]
    parts = tuple(
        Part(
            text=text,
            verdict=verdict_on(steps.of(number, results), steps.elsewhere[number]) if steps.answered[number] else None,
            results=_ids(steps.of(number, shown)),
        )
        for number, text in enumerate(steps.texts)
    )
    return Shortlist(
        query_id=query_id,
        query=query,
        verdict=verdict,
        intent=intent,
        ranked=tuple(placed),
        shown=len(shown),
        trace=trace,
        parts=parts if query.queries else (),
        excluded=tuple(excluded.items()),
    )


def _ids(results: Iterable[Result]) -> tuple[Id, ...]:
    return tuple(result.id for result in results)


def note_on_moved(shown: Sequence[Result]) -> list[str]:
    """What of an answer callers' reports have placed higher; ids as in `note_on_none`."""
    moved = [quote_id(result.id) for result in shown if result.moved][:_NEAREST]
    return [f"placed higher by what callers reported or operators taught: {', '.join(moved)}"] if moved else []


def quote_id(id: Id) -> str:
    """An id in a note: spelled out and in quotes, because it is in its owner's words."""
    return json.dumps(clip(spell_out(id), _LONGEST_ID), ensure_ascii=False)


def note_on_none(ranked: Sequence[Result]) -> str:
    """The nearest results, for an answer with the verdict `none`, and advice on what to try.

    Ids are spelled out and quoted: a note is in the words of mats, and names are in those of their owners.
    """
    ids = [quote_id(result.id) for result in ranked[:_NEAREST]]
    spaces = list(dict.fromkeys(result.candidate.profile.namespace for result in ranked))[:_NEAREST]
    return f"{NEAREST} {', '.join(ids)}; try other words, or one of the namespaces here, such as {', '.join(spaces)}"


def name_alternates(ranked: Sequence[Result]) -> list[Result]:
    """The results with the near-duplicates that were left out for them, each named once."""
    named, results = {result.id for result in ranked}, list[Result]()
    for result in ranked:
        left_out = sorted(result.candidate.marks.near - named)
        named.update(left_out)
        results.append(replace(result, alternates=tuple(left_out[:_MOST_ALTERNATES])) if left_out else result)
    return results


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
