"""Read capabilities that are visible to a caller: one by its id, or all of them page by page."""

import difflib
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat

from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound, DependencyFailed
from mats.domain.profile.assignment import MAX_PINNED
from mats.domain.profile.profile import Profile
from mats.domain.ranking.named import PINNED
from mats.domain.ranking.query import Filter
from mats.domain.text.words import query_terms, split_identifier
from mats.ports import SearchIndex

_AT_ONCE, _TIMES = 100, 10
"""Page size and maximum number of index pages per call; if few match, a page may be short although more follow."""


@dataclass(frozen=True, slots=True)
class Page:
    """Profiles in order of id, visible to the caller."""

    profiles: Sequence[Profile]
    following: Id | None  # After which the next page begins; None: there is none


@dataclass(frozen=True, slots=True)
class Browse:
    """The indexed profiles in order of id."""

    index: SearchIndex

    def __call__(self, admitted: Filter, wanted: Callable[[Profile], bool], *, after: Id | None, limit: int) -> Page:
        """At most `limit` profiles after `after` that the filter admits and `wanted` accepts.

        Raises:
            DependencyFailed: the index did not answer.
        """
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


_MOST, _SIMILAR = 3, 0.75  # Number of ids that are suggested, and their least similarity, 0 to 1
_NEIGHBOURS, _SAME_WORDS = 50, 10
"""Ids that are compared: those that follow in order of id, and those whose text has the words of the name."""
_MAX_ID = 300


@dataclass(frozen=True, slots=True)
class LookUp:
    """The indexed profile of a capability."""

    index: SearchIndex

    def __call__(self, id: Id, audiences: Collection[str] = ()) -> Profile:
        """The profile, for a caller in these audiences.

        Raises:
            CapabilityNotFound: there is none, or it is not visible to this caller; the message is the same.
            DependencyFailed: the index did not answer.
        """
        profile = self.index.fetch([id]).get(id)
        if profile is None or not Filter(audiences=frozenset(audiences)).sees(profile.visible_to):
            raise CapabilityNotFound(id)
        return profile

    def pins(self, audiences: Collection[str] = ()) -> Sequence[Profile]:
        """What operators pinned and a caller in these audiences may see, in order of id, at most `MAX_PINNED`.

        Raises:
            DependencyFailed: the index did not answer.
        """
        visible = Filter(audiences=frozenset(audiences))
        ids = self.index.exact([PINNED], visible, most=MAX_PINNED)
        found = self.index.fetch(ids) if ids else {}
        return [found[id] for id in sorted(found) if found[id].pinned and visible.sees(found[id].visible_to)]

    def nearest(self, id: Id, audiences: Collection[str] = ()) -> Sequence[Id]:
        """Ids visible to a caller in these audiences that resemble an unknown one, best first.

        At most two searches; none if the index does not answer.
        """
        visible, name = Filter(audiences=frozenset(audiences)), id.partition("/")[2] or id
        if len(id) > _MAX_ID:
            return []
        found: dict[Id, None] = {}
        with suppress(DependencyFailed):
            beginning = Id(id[: len(id) - len(name) + 2])
            found |= dict.fromkeys(self.index.page(visible, after=beginning, limit=_NEIGHBOURS))
            found |= dict.fromkeys(self.index.lexical(query_terms(split_identifier(name)), visible, depth=_SAME_WORDS))
        similar = [(max(_similarity(id, other), _similarity(name, other.partition("/")[2])), other) for other in found]
        return [
            other for likeness, other in sorted(similar, key=lambda one: (-one[0], one[1])) if likeness >= _SIMILAR
        ][:_MOST]


def _similarity(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one, other[:_MAX_ID]).ratio()
