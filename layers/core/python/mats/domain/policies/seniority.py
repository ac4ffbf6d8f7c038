"""Let what was there before, and what operators trust, come before newcomers: docs/decisions/0095.

A text can be made like any request; being there before, and the trust of an operator, cannot. Floods and stuffed texts
are newcomers: unrated, and new beside older candidates.
"""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.policies.policy import Policy, Pool
from mats.domain.profile.profile import DAY_S, Profile
from mats.domain.search.candidate import Result
from mats.domain.search.shortlist import Ranked, quote_id

NEW_DAYS = 30  # For so many days a capability is new, if others were registered on an earlier day
NEW_SHARE = 0.2  # Of the candidates that may be newcomers, unless these are as usual further down
_MOST, _ENOUGH = 0.5, 2  # The same where newcomers are usual, and how many times the candidates must be known to say so
_OLDER, _OLDER_IN_MEANING, _RATED = 0.7, 0.4, 0.3
"""Share of a newcomer's mixture from which on an older or a rated one leads it; the second where the cosine is at least
as high."""
_ECHOED = 0.3  # The same where the newcomer repeats the request
_AS_RELEVANT = 0.1  # Share of the relevance of what it leads that it must have itself


@dataclass(frozen=True)
class Seniority(Policy):
    """Only some newcomers may be candidates; without a reranker, a rated or older one leads them if it is relevant."""

    name: ClassVar = "seniority"
    unrated: int  # The trust of an unrated profile beside others, 0 to 100
    share: float = NEW_SHARE  # Of the candidates that may be newcomers

    def choose(self, pool: Pool, evidence: None) -> Pool:
        new = find_newcomers(pool.profiles, pool.oldest_s, pool.now_s)
        kept, spare = limit_newcomers(pool.kept, new, of=len(pool.profiles), k=pool.k, share=self.share)
        return replace(pool.mark([pool.profiles[n].id for n in new], new=True), kept=kept, spare=spare)

    def arrange(self, ranked: Ranked) -> Ranked:
        """The best rated one, then the best older one, before newcomers that are not much better."""
        for is_rated in (True, False):
            ranked = ranked if ranked.reranked else self._lead(ranked, is_rated=is_rated)
        return ranked

    def _lead(self, ranked: Ranked, *, is_rated: bool) -> Ranked:
        order = list(ranked.results)

        def is_established(result: Result) -> bool:
            candidate = result.candidate
            if result.unfit or result.relevance < ranked.thresholds.weak:
                return False
            return candidate.profile.is_trusted(self.unrated) if is_rated else not candidate.marks.new

        at = next((n for n, each in enumerate(order) if is_established(each)), 0)
        place = next((n for n in range(at) if _leads(order[at], order[n], ranked, is_rated=is_rated)), at)
        if place == at:
            return ranked
        why = "operators trust it and the others are new" if is_rated else "the others are new"
        note = f"placed before results with a higher score, because {why}: {quote_id(order[at].id)}"
        order.insert(place, order.pop(at))
        return ranked.with_results(order, *([note] if place == 0 else []))


def _leads(one: Result, other: Result, ranked: Ranked, *, is_rated: bool) -> bool:
    """Whether an older result, or a rated one, comes before another that has a higher score."""
    established, beside, scale = one.candidate, other.candidate, ranked.scoring.scale
    if not beside.marks.new or beside.marks.exact or one.relevance < _AS_RELEVANT * other.relevance:
        return False
    nearer = (established.cosine or 0.0) >= (beside.cosine or 0.0)
    least = _ECHOED if beside.marks.echo else _OLDER_IN_MEANING if nearer else _OLDER
    least = _RATED if is_rated else least
    ours, theirs = (scale.mix(each.bm25, each.cosine, each.pairs) or 0.0 for each in (established, beside))
    return ours + established.shift + established.gain >= least * (theirs + beside.shift + beside.gain)


def find_newcomers(profiles: Sequence[Profile], oldest_s: float, now_s: float) -> Set[int]:
    """The positions of the unrated that are new, and were registered more than a day after the oldest known one.

    Or later than the earliest change of a rated one after its registration: operators rated what was there.
    """
    rated = [(each.cause.time, each.first_registered) for each in profiles if each.is_rated and each.cause]
    reviews = [changed for changed, registered in rated if changed > registered]

    def is_new(profile: Profile) -> bool:
        since_s = profile.registered_s
        later = since_s > oldest_s + DAY_S or any(profile.first_registered > review for review in reviews)
        return later and since_s > now_s - NEW_DAYS * DAY_S

    return {n for n, each in enumerate(profiles) if not each.is_rated and is_new(each)}


def limit_newcomers(
    kept: Sequence[int], newcomers: Set[int], *, of: int, k: int, share: float
) -> tuple[list[int], list[int]]:
    """Positions without, and those of, the newcomers that would displace others from the first `k`.

    `kept` has the positions of candidates among `of` known profiles, best first. Newcomers may be this `share` of the
    first `k`, or that share of what is behind them which is, up to one half.
    """
    behind = kept[k:] if of >= _ENOUGH * k else ()
    usual = sum(position in newcomers for position in behind) / len(behind) if behind else 0.0
    most = math.ceil(k * max(share, min(_MOST, usual)))
    left_out = [position for position in kept if position in newcomers][most:]
    return [position for position in kept if position not in set(left_out)], left_out
