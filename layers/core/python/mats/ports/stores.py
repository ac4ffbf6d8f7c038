"""Stores of registrations, trust and profiles, the sources that registrations come from, and the changes of all."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.origin import Placed
from mats.domain.profile.profile import Cause, Profile
from mats.domain.profile.sync import SourceRun, TrackedEntry, TrackedSource
from mats.domain.text.synonyms import Groups
from mats.ports.models import Vector

Item: TypeAlias = Mapping[str, Any]
"""A registry item as stored; it may be invalid."""


class Registry(Protocol):
    """The registrations. Every write puts its change into the event queue in the same transaction."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        """The items that exist, by a consistent read."""

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        """Replace whole items; returns the effect on each id. An acknowledged write survives a crash.

        Raises:
            StorageUnusable: nothing was written.
        """

    def remove(self, id: Id) -> bool:
        """Remove an item; returns whether it existed."""

    def ids(self, *, after: Id | None = None, namespace: str = "") -> Iterator[Id]:
        """Every id once, in an order that lasts; ids written during the iteration may be missed.

        With `after`, only those that follow this id, which may have been removed; with `namespace`, only those in it or
        below it.
        """


class TaggedItem(NamedTuple):
    """An item as JSON text, and an ETag that changes with it."""

    etag: str
    text: str


Precondition: TypeAlias = Callable[[str | None], bool]
"""True if a write may replace the item with this ETag; None: there is no item."""


class TrustBook(Protocol):
    """Assignments of operators: rows for a capability, or for a namespace with all below it (`pattern_id`).

    A write leads to a change of each registered capability that it concerns.
    """

    def get(self, ids: Collection[Id]) -> Mapping[Id, Assigned]:
        """The resolved assignment of each of these capabilities (`resolve`), by a consistent read."""

    def rows(self, keys: Collection[Id]) -> Mapping[Id, Assigned]:
        """The rows that exist under these keys, without invalid values, by a consistent read."""

    def put(self, key: Id, assigned: Assigned) -> None:
        """Replace the row of a capability or namespace, registered or not; NOTHING_ASSIGNED withdraws it."""


class SynonymBook(Protocol):
    """The words that mean the same in this registry, as operators wrote them.

    Either operation may raise DependencyFailed: the store did not answer; safe to repeat.
    """

    def load(self) -> Groups:
        """All groups; what people mistyped in the store is left out."""

    def save(self, groups: Groups) -> None:
        """Replace all groups."""


GUARD_DAYS = 8
"""A day more than tombstones stay in the index, so that nothing there outlives the profile's revision number."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A profile and its vector, as stored."""

    profile: Profile
    vector: Vector | None = None


class ProfileStore(Protocol):
    """The profiles with every earlier revision: the source of truth of the index."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, Stored]:
        """The current revisions, tombstones included, by a consistent read."""

    def save(self, changes: Sequence[Stored]) -> Collection[Id]:
        """Write revisions; returns the ids of those that were superseded.

        A revision is written only if the stored one is its predecessor (`rev - 1`; none for rev 1), which then
        becomes an earlier version. An acknowledged write survives a crash.
        """

    def mark_indexed(self, revs: Mapping[Id, int]) -> None:
        """Set `indexed_rev` of these profiles; a no-op where the current revision is another one."""

    def versions(self, id: Id) -> Sequence[Profile]:
        """The earlier revisions of a profile, oldest first."""

    def erase(self, id: Id) -> int:
        """Delete the earlier revisions, and let the current one, a tombstone, expire; the number of revisions deleted.

        The tombstone stays for GUARD_DAYS: until then a run that still holds the content cannot write it.

        Raises:
            DependencyFailed: the current revision is no tombstone; or the store did not answer, and repeating resumes.
        """

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        """As `Registry.ids`; tombstones are included."""


class ListedProfile(NamedTuple):
    """A current profile, and whether the index has acknowledged this revision. Its own `indexed_rev` may be older."""

    profile: Profile
    indexed: bool


class ProfileChanges(NamedTuple):
    """Profiles that changed, and the position to ask from next."""

    position: int
    ids: Sequence[Id]


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


@dataclass(frozen=True, slots=True)
class Change:
    """Something about a capability changed. Carries the id, never the content."""

    id: Id
    cause: Cause


@dataclass(frozen=True, slots=True)
class NamespaceChange:
    """The row of a namespace changed, and with it every capability in it or below it; only those after an id, if given.

    In the order of `Registry.ids`.
    """

    namespace: str
    cause: Cause
    after: Id | None = None


class QueuedChange(NamedTuple):
    """A change in the local event queue; `source` is the table (Registry, Trust), `change` INSERT, MODIFY or REMOVE."""

    seq: int
    """Order of arrival."""
    event_id: str
    source: str
    change: str
    id: str
    time: str
    attempts: int


class QueueDepth(NamedTuple):
    """Number of changes that wait or are being handled, and of dead letters."""

    waiting: int
    dead: int


class DeadLetter(NamedTuple):
    """A change that failed too often, and why."""

    id: Id
    reason: str
