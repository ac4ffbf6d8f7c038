"""Sources that are synced again, and the registries that a sync writes to."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from mats.domain.capability.capability import Id
from mats.domain.profile.sync import SourceRun, TrackedEntry, TrackedSource
from mats.ports.stores import Item, Registry


class SourceState(NamedTuple):
    """A source, the outcome of its latest sync, and the number of its entries."""

    source: TrackedSource
    run: SourceRun
    entries: int
    gone: int
    """Of the entries: those that the source no longer lists."""


class SourceBook(Protocol):
    """The sources, and for one target registry what came from each. An acknowledged write survives a crash."""

    def add(self, source: TrackedSource) -> None:
        """Add a source, or replace the definition of the one with this name; what came from it stays known."""

    def remove(self, name: str) -> bool:
        """Forget a source and what came from it, for every target; returns whether there was one."""

    def all(self) -> Sequence[SourceState]:
        """Every source, in order of name."""

    def entries(self, name: str) -> Mapping[Id, TrackedEntry]:
        """The entries that came from a source."""

    def others(self, name: str, ids: Collection[Id]) -> Mapping[Id, Mapping[str, TrackedEntry]]:
        """The entries of other sources under these ids, by the name of the source; ids without any are left out."""

    def record(self, name: str, entries: Mapping[Id, TrackedEntry | None]) -> None:
        """Replace entries of a source; None forgets one."""

    def finish(self, name: str, run: SourceRun) -> None:
        """Replace the outcome of a source's latest sync."""


class SyncTarget(Registry, Protocol):
    """A registry that a sync writes to."""

    def remove_same(self, id: Id, item: Item) -> bool:
        """Remove an item if it is still this one; returns whether there was one.

        Raises:
            PreconditionFailed: there is another one.
        """
