"""List all capabilities visible to a caller, page by page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.ranking.query import Filter
from mats.ports import SearchIndex

_AT_ONCE, _TIMES = 100, 10
"""Page size and maximum number of index pages per call; if few match, a page may be short although more follow."""


@dataclass(frozen=True, slots=True)
class Page:
    """Profiles in order of id, and the id after which the next page begins, visible to the caller.

    None: there is no next page.
    """

    profiles: Sequence[Profile]
    following: Id | None


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
