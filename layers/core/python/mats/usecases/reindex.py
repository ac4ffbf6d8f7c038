"""Reindex: fill a new index while the old one answers and both get every write, then switch."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.ports import Generations, ProfileStore, Stored, Target


class ReindexCursor(NamedTuple):
    """Where an interrupted run continues: after this id, filling or already checking."""

    after: Id
    checking: bool = False


class ReindexStep(NamedTuple):
    """The progress of one page of profiles; a page that was only checked does not count as looked at."""

    looked_at: int
    written: int
    cursor: ReindexCursor


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindex:
    """Fill, check, promote. Resumable: entries already in the new index are skipped.

    Concurrent writes reach the new index as well, because it is a target before the first profile is read; of two
    writes to a profile the higher revision wins.
    """

    profiles: ProfileStore
    generations: Generations
    page: int = 256

    def __call__(self, start: ReindexCursor | None = None) -> Iterator[ReindexStep]:
        """Bring a new index into service, a page of profiles at a time.

        Raises:
            DependencyFailed: a store did not answer, or the new index is incomplete at the end; run it again.
        """
        target = self.generations.begin()
        after, checking = start or (None, False)
        if not checking:
            for ids, lacking in self._lacking(target, after):
                self.generations.fill(target, lacking)
                yield ReindexStep(len(ids), len(lacking), ReindexCursor(ids[-1]))
        for ids, lacking in self._lacking(target, after if checking else None):
            # unacknowledged ones are still being indexed
            if missing := [each for each in lacking if each.profile.is_indexed]:
                raise DependencyFailed(f"{target.name} lacks {len(missing)} of the profiles; run it again")
            yield ReindexStep(0, 0, ReindexCursor(ids[-1], checking=True))
        self.generations.promote(target)

    def _lacking(self, target: Target, after: Id | None) -> Iterator[tuple[list[Id], list[Stored]]]:
        """Each page of ids, and the profiles of those whose current revision an index lacks."""
        remaining = self.profiles.ids(after=after)
        while page := list(islice(remaining, self.page)):
            kept = self.profiles.get(page).values()  # before the index, which so has all that they acknowledge
            there = self.generations.revisions(target, page)
            yield page, [stored for stored in kept if there.get(stored.profile.id, 0) < stored.profile.rev]
