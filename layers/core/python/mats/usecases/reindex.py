"""Reindex: fill a new index while the old one answers and both get every write, then switch."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from mats.domain.capability import Id
from mats.domain.errors import DependencyFailed
from mats.ports import Generations, ProfileStore, Stored, Target


class ReindexStep(NamedTuple):
    """The progress of one page of profiles."""

    looked_at: int
    written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindex:
    """Fill, check, promote. Resumable: entries already in the new index are skipped.

    Concurrent writes reach the new index as well, because it is a target before the first profile is read; of two
    writes to a profile the higher revision wins.
    """

    profiles: ProfileStore
    generations: Generations
    page: int = 256

    def __call__(self) -> Iterator[ReindexStep]:
        """Bring a new index into service, a page of profiles at a time.

        Raises:
            DependencyFailed: a store did not answer, or the new index is incomplete at the end; run it again.
        """
        target = self.generations.begin()
        for looked_at, lacking in self._lacking(target):
            self.generations.fill(target, lacking)
            yield ReindexStep(looked_at, len(lacking))
        if missing := self._missing(target):
            raise DependencyFailed(f"{target.name} lacks {len(missing)} of the profiles; run it again")
        self.generations.promote(target)

    def _lacking(self, target: Target) -> Iterator[tuple[int, list[Stored]]]:
        """The size of each page of profiles, and those whose current revision an index lacks."""
        there = self._revisions(target)
        remaining = self.profiles.ids()
        while page := list(islice(remaining, self.page)):
            kept = self.profiles.get(page).values()
            yield len(page), [stored for stored in kept if there.get(stored.profile.id, 0) < stored.profile.rev]

    def _missing(self, target: Target) -> list[Id]:
        """Ids of acknowledged revisions that an index lacks; unacknowledged ones are still being indexed."""
        lacking = [stored.profile for _, page in self._lacking(target) for stored in page]
        settled = [profile for profile in lacking if profile.indexed_rev == profile.rev]
        there = self._revisions(target) if settled else {}
        return [profile.id for profile in settled if there.get(profile.id, 0) < profile.rev]

    def _revisions(self, target: Target) -> dict[Id, int]:
        return {id: rev for id, rev, _ in self.generations.revisions(target)}
