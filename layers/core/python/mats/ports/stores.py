"""Where registrations, trust and profiles are kept."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from mats.domain.capability import Id
from mats.domain.placement import Placed
from mats.domain.profile import Profile
from mats.domain.registration import Registration
from mats.ports.vectors import Vector

Item: TypeAlias = Mapping[str, Any]
"""A registry item as it is kept; it may break the contract of a registration."""


class Registry(Protocol):
    """What owners wrote. Every change is announced on the event path in the same step."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        """The items there are, as last written (a consistent read)."""
        ...

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        """Write registrations, each as a whole; what happened to each id. What was written survives a crash.

        Raises:
            StorageUnusable: nothing was written.
        """
        ...

    def remove(self, id: Id) -> bool:
        """Take an item out; whether there was one."""
        ...

    def ids(self) -> Iterator[Id]:
        """Every id once, in any order; what is written meanwhile may be missed."""
        ...


class TaggedItem(NamedTuple):
    """An item as JSON text, and an ETag that changes with it."""

    etag: str
    text: str


Precondition: TypeAlias = Callable[[str | None], bool]
"""Whether a write may replace the item with this ETag; None stands for no item."""


class ConditionalRegistry(Protocol):
    """Conditional writes to the registry: of two writers that read the same version, the second fails."""

    def get_tagged(self, id: Id) -> TaggedItem | None:
        """An item with its ETag, if there is one."""
        ...

    def placement(self, registration: Registration) -> Placed:
        """What a put would do now."""
        ...

    def put_if(self, precondition: Precondition, registration: Registration) -> Placed:
        """Write a registration if the precondition holds; both in one transaction.

        Raises:
            PreconditionFailed: it does not hold.
        """
        ...

    def remove_if(self, precondition: Precondition, id: Id) -> bool:
        """Remove an item if the precondition holds; whether there was one.

        Raises:
            PreconditionFailed: there is one, and the precondition does not hold.
        """
        ...


class TrustBook(Protocol):
    """What operators think of capabilities, 0 to 100. Owners cannot write here. Every change is announced."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, int]:
        """The trust there is (a consistent read)."""
        ...

    def put(self, id: Id, trust: int | None) -> None:
        """Set or, with None, take back the trust in a capability, registered or not."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """A profile and its vector, as the profile store keeps them."""

    profile: Profile
    vector: Vector | None = None


class ProfileStore(Protocol):
    """The source of truth of what is indexed, with every earlier revision."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, Stored]:
        """The current revisions there are, tombstones included (a consistent read)."""
        ...

    def save(self, changes: Sequence[Stored]) -> Collection[Id]:
        """Write revisions; returns the ids of those that came too late.

        A revision is written only where the kept one is exactly its predecessor (`rev - 1`; none for rev 1), which
        then joins the earlier versions. What was written survives a crash.
        """
        ...

    def mark_indexed(self, revs: Mapping[Id, int]) -> None:
        """Note that the index acknowledged these revisions; of a profile that has moved on, nothing is noted."""
        ...

    def versions(self, id: Id) -> Sequence[Profile]:
        """The earlier revisions of a profile, oldest first."""
        ...

    def ids(self) -> Iterator[Id]:
        """Every id once, tombstones included, in any order; what is written meanwhile may be missed."""
        ...
