"""The effect of a put on an id; registries, dry runs, previews and the console's check all use `place`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from mats.domain.profile.origin import fingerprint


class Placed(StrEnum):
    """The effect of a put on an id."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    OTHER_KIND = "other kind"
    """Rejected: a capability of another kind has the id, and the kind under an id cannot change."""

    @property
    def writes(self) -> bool:
        """Whether the item is written."""
        return self in (Placed.NEW, Placed.CHANGED)


class Version(NamedTuple):
    """The kind of an item, if it has one, and its fingerprint."""

    kind: str | None
    digest: str


def version_of(item: Mapping[str, Any]) -> Version:
    return Version(item.get("kind"), fingerprint(item))


def place(before: Version | None, after: Version) -> Placed:
    """The effect of putting `after` over `before` (None: no item is stored)."""
    if before is None:
        return Placed.NEW
    if before.kind is not None and before.kind != after.kind:
        return Placed.OTHER_KIND
    return Placed.UNCHANGED if before.digest == after.digest else Placed.CHANGED
