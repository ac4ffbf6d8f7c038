"""Put first what an operator taught for this very request: docs/decisions/0086."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import taught_id
from mats.domain.policies.policy import Ask, Order, Policy, Pool
from mats.domain.search.candidate import Exactness, Result
from mats.domain.search.lookups import Lookups, Vector
from mats.domain.search.shortlist import Ranked


@dataclass(frozen=True)
class Lessons(Policy):
    """An operator's word comes before every other order, and is a match.

    It is about the text that was there: where an owner has replaced that, it says nothing.
    """

    name: ClassVar = "lessons"
    reads: ClassVar = ("look",)
    lesson: Callable[[str], Mapping[Id, str]]
    """The capabilities that serve the request of this query id, each with the time at which that was taught."""

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Mapping[Id, str]:
        return self.lesson(taught_id(ask.text))

    def nominate(self, order: Order, evidence: Mapping[Id, str] | None) -> Order:
        return order.led_by(sorted(evidence)) if evidence else order

    def choose(self, pool: Pool, evidence: Mapping[Id, str] | None) -> Pool:
        known = (each for each in pool.profiles if evidence and each.id in evidence)
        taught = [each.id for each in known if evidence and not each.is_newer_than(evidence[each.id])]
        return pool.mark(taught, exact=Exactness.TAUGHT)

    def arrange(self, ranked: Ranked) -> Ranked:
        taught = [each for each in ranked.results if _is_taught(each)]
        if not taught:
            return ranked
        rest, least = [each for each in ranked.results if not _is_taught(each)], ranked.thresholds.match
        return ranked.with_results([*(replace(each, relevance=max(each.relevance, least)) for each in taught), *rest])


def _is_taught(result: Result) -> bool:
    return result.candidate.marks.exact is Exactness.TAUGHT
