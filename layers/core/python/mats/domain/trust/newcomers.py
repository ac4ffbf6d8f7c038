"""Newcomers: unrated capabilities that are new beside older ones, and how far they may displace these.

Floods and stuffed texts are new: what was there before them has been seen, and may have been used. docs/decisions/0095.
"""

import math
from collections.abc import Sequence, Set
from datetime import datetime, timedelta

from mats.domain.profile.profile import Profile
from mats.domain.trust.near_duplicates import DAY

NEW_DAYS = 30  # For so many days a capability is new, if others were registered on an earlier day
SHARE = 0.2  # Of the candidates that may be newcomers, unless these are as usual further down: docs/decisions/0095
_MOST, _ENOUGH = 0.5, 2  # The same where newcomers are usual, and how many times the candidates must be known to say so


def find_newcomers(profiles: Sequence[Profile], first: str, now: str) -> Set[int]:
    """The positions of the unrated that were registered on a later day than the `first`, and are new."""
    known = (datetime.fromisoformat(now) - timedelta(days=NEW_DAYS)).isoformat()
    latest = max(first, known)[:DAY]
    return {n for n, each in enumerate(profiles) if each.first_registered[:DAY] > latest and not is_rated(each)}


def is_rated(profile: Profile) -> bool:
    """Whether operators gave it trust or verified its provider."""
    return profile.trust is not None or profile.provider_verified


def limit_newcomers(
    kept: Sequence[int], newcomers: Set[int], *, of: int, k: int, share: float
) -> tuple[list[int], list[int]]:
    """Positions without, and those of, the newcomers that would displace others from the first `k`.

    Args:
        kept: The positions of candidates among `of` profiles, best first.
        newcomers: Those of newcomers.
        of: How many profiles are known.
        k: The number of candidates.
        share: Of these that may be newcomers, or that share of what is behind the first `k` which is, up to one half.
    """
    behind = kept[k:] if of >= _ENOUGH * k else ()
    usual = sum(position in newcomers for position in behind) / len(behind) if behind else 0.0
    most = math.ceil(k * max(share, min(_MOST, usual)))
    left_out = [position for position in kept if position in newcomers][most:]
    return [position for position in kept if position not in set(left_out)], left_out
