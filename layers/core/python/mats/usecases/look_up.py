"""Read capabilities that are visible to a caller: one by its id, or all of them page by page."""

import difflib
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat

from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound, DependencyFailed
from mats.domain.profile.profile import Profile
from mats.domain.search.query import Filter
from mats.domain.text.words import query_terms, split_identifier
from mats.ports import SearchIndex

_AT_ONCE, _TIMES = 100, 10
"""Page size and maximum number of index pages per call; if few match, a page may be short although more follow."""


@dataclass(frozen=True, slots=True)
class Page:
    """Profiles in order of id, visible to the caller."""

    profiles: Sequence[Profile]
    following: Id | None  # After which the next page begins; None: there is none


_MOST, _FARTHEST, _SPREAD = 3, 0.25, 0.1
"""Number of ids that are suggested, and their largest distance, 0 to 1: in all, and beyond that of the nearest."""
_NEIGHBOURS, _SAME_WORDS = 50, 10
"""Ids that are compared: those that follow in order of id, and those whose text has the words of the name."""
_MAX_ID = 300


@dataclass(frozen=True, slots=True)
class LookUp:
    """Reads indexed profiles. Every method raises DependencyFailed: the index did not answer."""

    index: SearchIndex

    def __call__(self, id: Id, audiences: Collection[str] = ()) -> Profile:
        """The profile of a capability, for a caller in these audiences.

        Raises CapabilityNotFound: there is none, or it is not visible to this caller; the message is the same.
        """
        profile = self.index.fetch([id]).get(id)
        if profile is None or not Filter(audiences=frozenset(audiences)).sees(profile.visible_to):
            raise CapabilityNotFound(id)
        return profile

    def browse(self, admitted: Filter, wanted: Callable[[Profile], bool], *, after: Id | None, limit: int) -> Page:
        """At most `limit` profiles after `after` that the filter admits and `wanted` accepts, in order of id."""
        profiles: list[Profile] = []
        begin = seen = after
        for size in (min(limit, _AT_ONCE), *repeat(_AT_ONCE, _TIMES)):  # usually `wanted` accepts all
            ids = self.index.page(admitted, after=begin, limit=size)
            found = self.index.fetch(ids)
            for id in ids:
                begin, profile = id, found.get(id)
                if profile is None or not admitted.sees(profile.visible_to):
                    continue  # searches lag by up to a second; the fetched profile is current
                seen = id
                if wanted(profile):
                    profiles.append(profile)
                if len(profiles) == limit:
                    return Page(profiles, seen if id != ids[-1] or len(ids) == size else None)
            if len(ids) < size:
                return Page(profiles, None)
        return Page(profiles, seen)

    def nearest(self, id: Id, audiences: Collection[str] = ()) -> Sequence[Id]:
        """Ids visible to a caller that resemble an unknown one, best first; none if the index does not answer."""
        visible, name = Filter(audiences=frozenset(audiences)), id.partition("/")[2] or id
        if len(id) > _MAX_ID:
            return []
        found: dict[Id, None] = {}
        with suppress(DependencyFailed):
            beginning = Id(id[: len(id) - len(name) + 2])
            found |= dict.fromkeys(self.index.page(visible, after=beginning, limit=_NEIGHBOURS))
            found |= dict.fromkeys(self.index.lexical(query_terms(split_identifier(name)), visible, depth=_SAME_WORDS))
        near = sorted((*_distances(id, name, other), other) for other in found)
        farthest = min(_FARTHEST, near[0][0] + _SPREAD) if near else 0.0
        return [other for distance, _, other in near if distance <= farthest][:_MOST]


def _distances(id: Id, name: str, other: Id) -> tuple[float, float]:
    """The smaller distance of ids or of names, then that of ids; within a namespace, names alone tell ids apart."""
    space, _, others = other.partition("/")
    whole, named = _distance(id, other), _distance(name, others)
    return (named if id.startswith(f"{space}/") else min(whole, named)), whole


def _distance(one: str, other: str) -> float:
    return 1 - difflib.SequenceMatcher(None, one, other[:_MAX_ID]).ratio()
