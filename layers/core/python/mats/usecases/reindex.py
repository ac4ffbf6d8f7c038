"""Reindex: fill a new index while the old one answers and both get every write, then switch."""

from collections.abc import Iterator
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.ports import Generations, ProfileStore, Stored, Target
from mats.usecases.deadline import Progress, in_pages


@dataclass(frozen=True, slots=True, kw_only=True)
class Reindex:
    """Fill, check, promote. Resumable: entries already in the new index are skipped.

    Concurrent writes reach the new index as well, because it is a target before the first profile is read; of two
    writes to a profile the higher revision wins.
    """

    profiles: ProfileStore
    generations: Generations
    page: int = 256

    def __call__(self, after: Id | None = None, stage: int = 0) -> Iterator[Progress]:
        """Bring a new index into service, a page of profiles at a time; stage 1 only checks, and counts none.

        Raises DependencyFailed: a store did not answer, or the new index is incomplete at the end; run it again.
        """
        target = self.generations.begin()
        if not stage:
            for ids, lacking in self._lacking(target, after):
                self.generations.fill(target, lacking)
                yield Progress({"profiles": len(ids), "written": len(lacking)}, ids[-1])
        for ids, lacking in self._lacking(target, after if stage else None):
            # unacknowledged ones are still being indexed
            if missing := [each for each in lacking if each.profile.is_indexed]:
                raise DependencyFailed(f"{target.name} lacks {len(missing)} of the profiles; run it again")
            yield Progress({"profiles": 0, "written": 0}, ids[-1], stage=1)
        self.generations.promote(target)

    def _lacking(self, target: Target, after: Id | None) -> Iterator[tuple[list[Id], list[Stored]]]:
        """Each page of ids, and the profiles of those whose current revision an index lacks."""
        for page in in_pages(self.profiles.ids(after=after), self.page):
            kept = self.profiles.get(page).values()  # before the index, which so has all that they acknowledge
            there = self.generations.revisions(target, page)
            yield page, [stored for stored in kept if there.get(stored.profile.id, 0) < stored.profile.rev]
