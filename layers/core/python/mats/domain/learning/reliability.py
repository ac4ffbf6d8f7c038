"""How reliable a capability is: the posterior of its trust after what callers report. docs/decisions/0050."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.search.candidate import NO_COUNTS, Counts

PRIOR_OUTCOMES = 20.0  # Number of outcomes that trust, or its prior, counts as
HALF_LIFE = timedelta(days=30)
MOST_PER_CALLER = 3.0  # Most successes, and most failures, of one caller that count for others
_EPOCH = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
_MOST_LIVES = 900.0  # Half-lives from the epoch, some 74 years: a clock beyond leaves sums finite
_Z = 1.959964  # The normal quantile of a 95 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """One caller's reports on a capability: sums of `weight_at`, so that recording an outcome only adds.

    `succeeded` adds to `successes`, `failed` to `failures`. `wrong` adds to neither: it says that a capability did not
    fit a request, not that it fails.
    """

    caller: str
    successes: float = 0.0
    failures: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """A posterior: its mean and 95 % interval in [0, 1], and the decayed outcomes behind it."""

    mean: float
    low: float
    high: float
    successes: float
    failures: float

    def to_json(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in asdict(self).items()}


def weight_at(at: str) -> float:
    """The weight of an outcome at a time, ISO 8601 with an offset: it doubles with every half-life.

    Weights of different times can be added, and a sum divided by `weight_at(now)` is the sum of the decayed outcomes
    (forward decay: Cormode et al., ICDE 2009).
    """
    lives = (datetime.fromisoformat(at) - _EPOCH) / HALF_LIFE
    return float(2.0 ** min(_MOST_LIVES, max(-_MOST_LIVES, lives)))


def count(tallies: Collection[Tally], *, asking: str, now: str) -> Counts:
    """The outcomes that count for the caller who asks, from one tally of each caller.

    Its own count in full. Of the others, each has at most `MOST_PER_CALLER` successes and as many failures, and the
    caller with most of either is struck out. So no caller alone changes anything for others.
    """
    weight = weight_at(now)
    successes = {tally.caller: max(0.0, tally.successes / weight) for tally in tallies}
    failures = {tally.caller: max(0.0, tally.failures / weight) for tally in tallies}
    return Counts(
        successes=successes.get(asking, 0.0) + _sum_of_others(successes, asking, MOST_PER_CALLER),
        failures=failures.get(asking, 0.0) + _sum_of_others(failures, asking, MOST_PER_CALLER),
        rise=math.inf if successes.get(asking) else _sum_of_others(successes, asking, 1),
        sink=math.inf if failures.get(asking) else _sum_of_others(failures, asking, 1),
    )


def _sum_of_others(by_caller: Mapping[str, float], asking: str, most: float) -> float:
    """The sum over other callers, each at most `most`, without the largest."""
    return math.fsum(sorted(min(value, most) for caller, value in by_caller.items() if caller != asking)[:-1])


def limit_moves(before: Sequence[Id], after: Sequence[Id], counts: Mapping[Id, Counts]) -> list[Id]:
    """The order before anything was reported, with so much of the order after it as the number of callers allows.

    Two neighbours change places if that leads from `before` to `after`, and the upper one may still sink or the lower
    one rise. Both have the same ids.
    """
    places = {id: place for place, id in enumerate(after)}
    rise = {id: counts.get(id, NO_COUNTS).rise for id in before}
    sink = {id: counts.get(id, NO_COUNTS).sink for id in before}
    order: list[Id] = []
    for id in before:
        place = len(order)
        while place and places[id] < places[upper := order[place - 1]]:
            if sink[upper] >= 1:
                sink[upper] -= 1
            elif rise[id] >= 1:
                rise[id] -= 1
            else:
                break
            place -= 1
        order.insert(place, id)
    return order


def posterior_mean(prior: float, counts: Counts) -> float:
    """The mean of the posterior, in [0, 1], as of `posterior`, without its interval."""
    n = PRIOR_OUTCOMES + counts.successes + counts.failures
    shift = (counts.successes * (1 - prior) - counts.failures * prior) / n
    return min(1.0, max(0.0, prior + shift))


def posterior(prior: float, counts: Counts) -> Reliability:
    """The posterior of a prior in [0, 1]: Beta, with the prior as `PRIOR_OUTCOMES` outcomes.

    The interval is Wilson's, which is defined for a prior of 0 and 1, too.
    """
    mean = posterior_mean(prior, counts)
    low, high = wilson_interval(mean, PRIOR_OUTCOMES + counts.successes + counts.failures)
    return Reliability(mean=mean, low=low, high=high, successes=counts.successes, failures=counts.failures)


def wilson_interval(share: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a share of n, which is above 0: Wilson's, which includes the share and is within [0, 1]."""
    centre = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half))


Tallies: TypeAlias = Mapping[Id, Sequence[Tally]]  # Sums of reported outcomes, by capability
