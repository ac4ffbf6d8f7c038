"""Copies: capabilities with nearly the description of one in another namespace."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import combinations
from typing import NamedTuple

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.text.lookalikes import skeleton
from mats.domain.trust.near_duplicates import Wording, trust_of

_ONE_IMPORT_S = 10.0
"""Registrations within this time may come from one import, whose order says nothing about the original."""
_SIMILARITY = 0.75
"""Word overlap from which on a text is a copy; near-duplicates may differ more."""
_COPIED = 60
"""Descriptions of fewer characters may coincide under different names."""


def copies(profiles: Sequence[Profile], *, unrated: int) -> Mapping[Id, Sequence[Id]]:
    """The copies among profiles, each with its originals in the order given.

    The original is the one with more trust, or of equal trust the one registered earlier. Within one import the order
    says little: there, only those with the same name and a long description are copies, and where both were registered
    at once, each of the other. Honest imports have many other twins.

    Args:
        profiles: Each id once.
        unrated: The trust of an unrated profile, 0 to 100.
    """
    originals: dict[Id, list[Id]] = {}
    for one, other in combinations(profiles, 2):
        if one.namespace != other.namespace and (evidence := _compare(one, other)):
            for copy, original in ((one, other), (other, one)):
                if _may_be_original(original, copy, unrated, evidence):
                    originals.setdefault(copy.id, []).append(original.id)
    return originals


class _Evidence(NamedTuple):
    """The text that two near-duplicates have in common: the name, a long description."""

    name: bool
    description: bool


def _compare(one: Profile, other: Profile) -> _Evidence | None:
    """The reason why two texts are too near for a coincidence; None if there is none."""
    wording, others = Wording.of(one), Wording.of(other)
    name = skeleton(one.name) == skeleton(other.name) and wording.is_near(others, _SIMILARITY)
    long = all(each.source and len(each.source.description) >= _COPIED for each in (one, other))
    description = long and wording.describes_the_same(others, _SIMILARITY)
    return _Evidence(name, description) if name or description else None


def _may_be_original(original: Profile, copy: Profile, unrated: int, evidence: _Evidence) -> bool:
    if (trust := trust_of(original, unrated)) != (other := trust_of(copy, unrated)):
        return trust > other
    equal = original.first_registered == copy.first_registered  # or both unknown
    earlier_s = 0.0 if equal else _time_s(copy) - _time_s(original)
    return earlier_s > _ONE_IMPORT_S or (all(evidence) and earlier_s >= 0.0)


def _time_s(profile: Profile) -> float:
    """Seconds since 1970; minus infinity if the time was not recorded."""
    try:
        return datetime.fromisoformat(profile.first_registered).timestamp()
    except ValueError:
        return -math.inf
