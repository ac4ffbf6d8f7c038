"""Stores of registrations, trust and profiles."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.origin import Placed
from mats.domain.profile.profile import Profile
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
"""Whether a write may replace the item with this ETag; None: there is no item."""


class ConditionalRegistry(Protocol):
    """Conditional writes to the registry: of two writers that read the same version, the second fails."""

    def get_tagged(self, id: Id) -> TaggedItem | None:
        """An item with its ETag, if there is one."""

    def placement(self, registration: Registration) -> Placed:
        """The effect that a put would have now."""

    def put_if(self, precondition: Precondition, registration: Registration) -> Placed:
        """Write a registration if the precondition is true; check and write are one transaction.

        Raises:
            PreconditionFailed: the precondition is false.
        """

    def remove_if(self, precondition: Precondition, id: Id) -> bool:
        """Remove an item if the precondition is true; returns whether it existed.

        Raises:
            PreconditionFailed: the item exists, and the precondition is false.
        """


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


class Listing(Protocol):
    """The registry and its profiles for readers that keep a copy. Not safe to share between threads without a lock."""

    def version(self) -> int:
        """A number that changes with every write to registry, profiles or queue, by any process; cheap to read."""

    def kinds(self) -> Mapping[Id, str]:
        """The kind of every registered id as its item has it, in order of id."""

    def changes(self, since: int | None) -> ProfileChanges:
        """Every profile with a revision indexed after this position, tombstones included; None: every profile."""

    def profiles(self, ids: Collection[Id]) -> Sequence[ListedProfile]:
        """The current profiles there are, without vectors."""
