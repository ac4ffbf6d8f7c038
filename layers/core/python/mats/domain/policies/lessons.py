"""Put first what an operator taught for this very request: docs/decisions/0086."""

from collections.abc import Callable, Collection
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
    """An operator's word comes before every other order, and is a match."""

    name: ClassVar = "lessons"
    reads: ClassVar = ("look",)
    lesson: Callable[[str], Collection[Id]]  # The capabilities that serve the request of this query id

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Collection[Id]:
        return self.lesson(taught_id(ask.text))

    def nominate(self, order: Order, evidence: Collection[Id] | None) -> Order:
        return order.led_by(sorted(evidence)) if evidence else order

    def choose(self, pool: Pool, evidence: Collection[Id] | None) -> Pool:
        return pool.mark(evidence or (), exact=Exactness.TAUGHT)

    def arrange(self, ranked: Ranked) -> Ranked:
        taught = [each for each in ranked.results if _is_taught(each)]
        if not taught:
            return ranked
        rest, least = [each for each in ranked.results if not _is_taught(each)], ranked.thresholds.match
        return ranked.with_results([*(replace(each, relevance=max(each.relevance, least)) for each in taught), *rest])


def _is_taught(result: Result) -> bool:
    return result.candidate.marks.exact is Exactness.TAUGHT
