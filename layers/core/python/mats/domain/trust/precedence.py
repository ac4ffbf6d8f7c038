"""The order of precedence: copies behind their originals, claimed providers behind verified ones."""

import math
import re
import unicodedata
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple, TypeVar

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.text.fence import skeleton
from mats.domain.text.words import split_identifier
from mats.domain.trust.near_duplicates import Wording, trust_of

K = TypeVar("K", bound=Hashable)


def apply_precedence(order: Sequence[K], *rules: Mapping[K, Collection[K]]) -> list[K]:
    """The order with each key moved directly behind the last of its predecessors, if it is not behind them already.

    The other keys keep their order. Where rules contradict each other, the earlier rule applies; the keys of a cycle
    are placed in their order.

    Args:
        order: Each key once.
        rules: The predecessors of a key; keys that are not in the order are ignored.
    """
    if not any(rules):
        return list(order)
    waiting = dict.fromkeys(order)
    placed: list[K] = []
    while waiting:
        free = next(
            key
            for count in range(len(rules), -1, -1)
            for key in waiting
            if all(waiting.keys().isdisjoint(rule.get(key, ())) for rule in rules[:count])
        )
        del waiting[free]
        placed.append(free)
    return placed


_GENERIC = frozenset(
    skeleton(word)
    for word in (
        "ab ag api apis as bv by co com company corp corporation dev from gmbh group holding holdings hq http https "
        "inc incorporated int international io kg limited llc llp ltd mcp net nv official org oy platform plc pte pty "
        "sa sas server servers spa srl support team the verified www"
    ).split()
)
"""Legal forms, ends of host names, and what else makes no other provider of a name."""
_WORD = re.compile(r"\w+")
_INITIAL = re.compile(r"\b(\w)\.(?=\w\b)")
"""Of an abbreviation such as L.L.C."""
_CACHED = 4_096


@lru_cache(maxsize=_CACHED)
def provider_key(name: str) -> str:
    """A key that names people take for one provider share: `Stripe`, `STRIPE, Inc.`, `stripe.com`, `Ѕtripe™`."""
    plain = "".join(" " if _is_sign(c) else c for c in name)
    words = _WORD.findall(skeleton(split_identifier(_INITIAL.sub(r"\1", plain))))
    return "".join([word for word in words if word not in _GENERIC] or words)


def _is_sign(character: str) -> bool:
    """True if a character is a symbol such as `™` or `+`, and no letter in a circle or box, such as `Ⓢ`."""
    if not unicodedata.category(character).startswith("S"):
        return False
    seen = skeleton(character)
    return character.isascii() or len(seen) != 1 or not seen.isalpha()


def claims(profiles: Iterable[Profile]) -> Mapping[Id, tuple[Profile, ...]]:
    """The profiles with an unverified provider that is verified for others among them, each with these others."""
    known = [(provider_key(profile.provider), profile) for profile in profiles if profile.provider]
    verified: dict[str, tuple[Profile, ...]] = {}
    for key, profile in known:
        if profile.provider_verified:
            verified[key] = (*verified.get(key, ()), profile)
    return {profile.id: verified[key] for key, profile in known if key in verified and not profile.provider_verified}


def claim_reason(verified: Profile) -> str:
    """Why a capability that claims the provider of this one is suspicious."""
    return f"claims the provider {verified.provider}, which is verified for the namespace {verified.namespace}"


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
