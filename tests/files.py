"""An index in files of a bucket for tests: writers that die at any write."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from mats.adapters.files.bucket import Bucket
from mats.adapters.files.generations import FilesGenerations
from mats.adapters.files.index import FilesIndex
from mats.adapters.files.store import Store
from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Cause
from mats.ports import Change
from mats.usecases.reconcile import Reconcile
from tests.fakes import CountingIds, FakeEncoder
from tests.world import World

ENCODER = FakeEncoder()


class Killed(BaseException):
    """In place of the end of a process."""


@cache
def bucket_at(address: str) -> Bucket:
    """A client takes long to make, so there is one for each stand-in."""
    return Bucket("bucket")


def a_bucket() -> Bucket:
    return bucket_at(os.environ["AWS_ENDPOINT_URL_S3"])


class Mortal(Bucket):
    """Its process dies at a given write or deletion, before it or after it."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.__dict__ |= a_bucket().__dict__
        self.left, self.after = at, after

    def write(self, *args: Any, **named: Any) -> bool:
        return bool(self._survive(partial(super().write, *args, **named)))

    def delete(self, *args: Any) -> None:
        self._survive(partial(super().delete, *args))

    def _survive(self, work: Callable[[], Any]) -> Any:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise Killed
        done = work()
        if self.left == 0:
            raise Killed
        return done


class FilesWorld(World):
    """The offline path over a bucket; each process that is opened may die."""

    def __init__(self) -> None:
        super().__init__(encoder=ENCODER)
        self.opened: list[Any] = []
        self.files, self.generations = self.open()
        self.whole = self.enrich

    def open(self, bucket: Bucket | None = None) -> tuple[FilesIndex, FilesGenerations]:
        store = Store(bucket or a_bucket(), "index")
        generations = FilesGenerations(store, ENCODER.name)
        index = FilesIndex(store, generations.writable, encoder=ENCODER.name, fresh_s=0)
        self.opened += [index, generations]
        return index, generations

    def close(self) -> None:
        for each in self.opened:
            each.close()

    def handle(self, *ids: Id, bucket: Bucket | None = None) -> None:
        """Enrichment in a process of its own."""
        index, _ = self.open(bucket)
        cause = Cause(event_id="e", time=self.clock.now())
        replace(self.enrich, index=index)([Change(id, cause) for id in ids])

    def reconcile(self) -> int:
        """What the night does; returns how many it had to mend."""
        index, generations = self.open()
        task = Reconcile(
            enrich=replace(self.enrich, index=index), registry=self.registry, profiles=self.profiles, index=index,
            clock=self.clock, ids=CountingIds(),
        )  # fmt: skip
        mended = sum(
            step.counts["reindexed"] + step.counts["orphans"]
            for step in task([id for _, page in task.pages() for id in page])
        )
        generations.compact(least=1)
        return mended

    def faults(self, index: FilesIndex) -> dict[str, int]:
        """What a reader lacks, what it should not have, and what it has in an older state."""
        kept = {id: entry.profile for id, entry in self.profiles.kept.items()}
        live = {id for id, profile in kept.items() if profile.findable}
        there = index.revisions([*index.ids()])
        found = index.fetch(there)
        return {
            "lost": len(live - found.keys()),
            "ghosts": len(found.keys() - live),
            "older": sum(there.get(id, kept[id].rev) < kept[id].rev for id in live),
        }
