"""Go through all capabilities a caller may see, page by page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat

from mats.domain.capability import Id
from mats.domain.profile import Profile
from mats.domain.query import Filter
from mats.ports import SearchIndex

_AT_ONCE, _TIMES = 100, 10
"""What one call looks at, at most: where few of the admitted are wanted, a page may be short and more still follow."""


@dataclass(frozen=True, slots=True)
class Page:
    """Profiles in order of id, and the id behind which the next page begins: one that the caller may see.

    None if nothing can follow.
    """

    profiles: Sequence[Profile]
    following: Id | None


@dataclass(frozen=True, slots=True)
class Browse:
    """The indexed profiles in order of id."""

    index: SearchIndex

    def __call__(self, admitted: Filter, wanted: Callable[[Profile], bool], *, after: Id | None, limit: int) -> Page:
        """At most `limit` profiles behind `after` that the filter admits and that are wanted.

        Raises:
            DependencyFailed: the index did not answer.
        """
        profiles: list[Profile] = []
        begin = seen = after
        for size in (min(limit, _AT_ONCE), *repeat(_AT_ONCE, _TIMES)):  # mostly, all that is there is wanted
            ids = self.index.page(admitted, after=begin, limit=size)
            found = self.index.fetch(ids)
            for id in ids:
                begin, profile = id, found.get(id)
                if profile is None or not admitted.sees(profile.visible_to):
                    continue  # a search may be a second behind; what is fetched says who may see it now
                seen = id
                if wanted(profile):
                    profiles.append(profile)
                if len(profiles) == limit:
                    return Page(profiles, seen if id != ids[-1] or len(ids) == size else None)
            if len(ids) < size:
                return Page(profiles, None)
        return Page(profiles, seen)
