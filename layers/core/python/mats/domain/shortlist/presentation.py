"""Presentation of a ranking: the verdicts on a request and its parts, and the results that its caller is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.domain.ranking.blend import MinRelevance, Thresholds, Verdict
from mats.domain.shortlist.rank import Part, Result, best_relevance, split_by_relevance, take_in_turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The texts of a request's parts, which of them each candidate serves, by number, and which could be searched."""

    texts: Sequence[str]
    served: Mapping[Id, Sequence[int]]
    answered: Sequence[bool]

    def of(self, number: int, results: Sequence[Result]) -> list[Result]:
        """Those that serve a part."""
        return [result for result in results if number in self.served.get(result.candidate.profile.id, ())]


@dataclass(frozen=True, slots=True)
class Presented:
    """The verdict, the results with the shown ones first, the number of these, and the parts."""

    verdict: Verdict
    ranked: tuple[Result, ...]
    count: int
    parts: tuple[Part, ...]


def present(
    ranked: Sequence[Result],
    thresholds: Thresholds,
    steps: Steps,
    *,
    limit: int,
    min_relevance: MinRelevance | None,
    unread: bool,
) -> Presented:
    """Apply the thresholds, and choose what is shown; parts take turns in that.

    Args:
        ranked: Best first.
        thresholds: For the kind of relevance of the ranking.
        steps: The parts of the request, or the request as the only one.
        limit: Maximum of results shown.
        min_relevance: The least of a result shown.
        unread: The encoder does not read the language, to which a low relevance may be due.
    """

    def verdict_on(results: Sequence[Result]) -> Verdict:
        verdict = thresholds.verdict(best_relevance(results))
        return Verdict.WEAK if unread and verdict is Verdict.NONE and results else verdict

    doubted = unread and thresholds.verdict(best_relevance(ranked)) is Verdict.NONE
    least = 0.0 if doubted and min_relevance == "weak" else thresholds.cut(min_relevance)
    kept, cut = split_by_relevance(ranked, least)
    chosen = frozenset(_in_turn(kept, steps)[:limit])
    shown = [result for result in kept if result.candidate.profile.id in chosen]
    rest = [result for result in kept if result.candidate.profile.id not in chosen]
    parts = tuple(
        Part(
            text=text,
            verdict=verdict_on(steps.of(number, ranked)) if steps.answered[number] else None,
            results=_ids(steps.of(number, shown)),
        )
        for number, text in enumerate(steps.texts)
    )
    return Presented(verdict_on(ranked), (*shown, *rest, *cut), len(shown), parts)


def _in_turn(ranked: Sequence[Result], steps: Steps) -> list[Id]:
    """The results of every part in turn, beginning with the part of the best; then those that serve none."""
    ids = _ids(ranked)
    lists = [_ids(steps.of(number, ranked)) for number in range(len(steps.texts))]
    return take_in_turn([*sorted(filter(None, lists), key=lambda each: ids.index(each[0])), ids])


def _ids(results: Sequence[Result]) -> tuple[Id, ...]:
    return tuple(result.candidate.profile.id for result in results)
