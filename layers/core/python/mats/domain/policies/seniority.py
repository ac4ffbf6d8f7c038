"""Let what was there before, and what operators trust, come before newcomers: docs/decisions/0095.

A text can be made like any request; being there before, and the trust of an operator, cannot. Floods and stuffed texts
are newcomers: unrated, and new beside older candidates.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time
from functools import cache
from typing import ClassVar, NamedTuple

from mats.domain.policies.policy import Ask, Policy, Pool
from mats.domain.profile.index_keys import day_keys
from mats.domain.profile.profile import DAY_S, Profile
from mats.domain.search.candidate import Exactness, Result
from mats.domain.search.lookups import Lookups, Vector
from mats.domain.search.query import Filter, Scope
from mats.domain.search.shortlist import Ranked, quote_id
from mats.domain.text.words import split_identifier

NEW_DAYS = 30  # For so many days a capability is new, if others were registered on an earlier day
NEW_SHARE = 0.2  # Of the candidates that may be newcomers
_FREE = (Exactness.NAME, Exactness.SPELLED)  # What anybody may call a capability
_AS_RELEVANT = 0.6  # Share of a newcomer's relevance from which on a rated or an older one comes before it
_MOST = 0.5  # Share of a registry that is new above which nothing counts as new: an import is larger than the sample


class Ages(NamedTuple):
    """What a registry says of who is new."""

    oldest_s: float  # No later than when its first capability was registered, in seconds since 1970
    new_days: frozenset[str]  # Keys of the days on which newcomers were registered
    most_are_new: bool = False  # Then there is little to defend, and nothing is a newcomer


NO_AGES = Ages(math.inf, frozenset())


@dataclass(frozen=True)
class Seniority(Policy):
    """Only some newcomers may be candidates; without a reranker, a rated or older one leads them if it is relevant."""

    name: ClassVar = "seniority"
    reads: ClassVar = ("look",)
    unrated: int  # The trust of an unrated profile beside others, 0 to 100
    share: float = NEW_SHARE  # Of the candidates that may be newcomers

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Ages:
        """How old the registry is, whatever is found in it: hits may all be of one flood."""
        return ages_of(index, ask.admitted.audiences, ask.now_s)

    def choose(self, pool: Pool, evidence: Ages | None) -> Pool:
        """Newcomers beyond their share wait for places that what is older leaves."""
        ages, ask = evidence or NO_AGES, pool.ask
        if ages.most_are_new:
            return pool
        oldest_s = min([ages.oldest_s, *(profile.registered_s for profile in pool.profiles)])
        new = find_newcomers(pool.profiles, oldest_s, ask.now_s)
        kept, spare = limit_newcomers(pool.kept, new, math.ceil(pool.k * self.share))
        pool = pool.mark([pool.profiles[n].id for n in new], new=True)
        if split_identifier(ask.text) == ask.text:  # words, which a name may have been made of
            named = [n for n in pool.positions(lambda marks: marks.exact in _FREE) if n in new]
            pool = pool.mark([pool.profiles[n].id for n in named], exact=None)
        without = ask.admitted.scope.without_keys | ages.new_days
        older = replace(ask.admitted, scope=replace(ask.admitted.scope, without_keys=without))
        return replace(pool, kept=kept, spare=spare, instead=older if spare and ages.new_days else None)

    def arrange(self, ranked: Ranked) -> Ranked:
        """The best rated one, then the best older one, before newcomers that are not much better."""
        for is_rated in (True, False):
            ranked = ranked if ranked.reranked else self._lead(ranked, is_rated=is_rated)
        return ranked

    def _lead(self, ranked: Ranked, *, is_rated: bool) -> Ranked:
        order = list(ranked.results)

        def is_established(result: Result) -> bool:
            candidate = result.candidate
            if result.unfit or candidate.marks.elsewhere or result.relevance < ranked.thresholds.weak:
                return False
            return candidate.profile.is_trusted(self.unrated) if is_rated else not candidate.marks.new

        at = next((n for n, each in enumerate(order) if is_established(each)), 0)
        place = next((n for n in range(at) if _leads(order[at], order[n], is_rated=is_rated)), at)
        if place == at:
            return ranked
        why = "operators trust it and the others are new" if is_rated else "the others are new"
        note = f"placed before results with a higher score, because {why}: {quote_id(order[at].id)}"
        order.insert(place, order.pop(at))
        return ranked.with_results(order, *([note] if place == 0 else []))


def _leads(established: Result, other: Result, *, is_rated: bool) -> bool:
    """Whether an older result, or a rated one, comes before another that has a higher score."""
    marks = other.candidate.marks
    # an example that is the request, word for word, is what an attacker writes
    least = 0.0 if is_rated and marks.quoted else _AS_RELEVANT
    return marks.new and not marks.exact and established.relevance >= least * other.relevance


def ages_of(index: Lookups, audiences: frozenset[str], now_s: float) -> Ages:
    """The ages of what callers in these audiences see."""
    days = [datetime.fromtimestamp(now_s - n * DAY_S, UTC).date() for n in range(-1, NEW_DAYS + 1)]

    def keys(n: int) -> frozenset[str]:
        return frozenset(day_keys(map(str, days[: n + 1])))

    @cache
    def older(n: int) -> int:
        """How many of all, which are those of -1, were registered before a day."""
        return index.count(Filter(audiences=audiences, scope=Scope(without_keys=keys(n))))

    last, oldest_s = len(days) - 1, -math.inf
    if not older(last):
        first = bisect_left(range(last), True, key=lambda n: not older(n))
        oldest_s = datetime.combine(days[first], time(), UTC).timestamp() + DAY_S
        last = max(first - 2, -1)
    return Ages(oldest_s, keys(last), older(-1) - older(last) > _MOST * older(-1))


def find_newcomers(profiles: Sequence[Profile], oldest_s: float, now_s: float) -> Set[int]:
    """The positions of the unrated that are new, and were registered more than a day after the oldest known one.

    Or after operators rated what was there already.
    """
    reviews = [each.rated_since for each in profiles if each.is_rated and each.rated_since > each.first_registered]

    def is_new(profile: Profile) -> bool:
        since_s = profile.registered_s
        later = since_s > oldest_s + DAY_S or any(profile.first_registered > review for review in reviews)
        return later and since_s > now_s - NEW_DAYS * DAY_S

    return {n for n, each in enumerate(profiles) if not each.is_rated and is_new(each)}


def limit_newcomers(kept: Sequence[int], newcomers: Set[int], most: int) -> tuple[list[int], list[int]]:
    """Positions without, and those of, the newcomers after the first `most`; `kept` has candidates, best first."""
    left_out = [position for position in kept if position in newcomers][most:]
    return [position for position in kept if position not in set(left_out)], left_out
