"""Incremental reads of registry and profiles, for a list of all capabilities."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from mats.domain.capability import Id
from mats.domain.profile import Profile


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
        ...

    def kinds(self) -> Mapping[Id, str]:
        """The kind of every registered id as its item has it, in order of id."""
        ...

    def changes(self, since: int | None) -> ProfileChanges:
        """Every profile with a revision indexed after this position, tombstones included; None: every profile."""
        ...

    def profiles(self, ids: Collection[Id]) -> Sequence[ListedProfile]:
        """The current profiles there are, without vectors."""
        ...
