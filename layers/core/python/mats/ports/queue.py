"""Changes of capabilities, and the event queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Cause


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


class QueueMonitor(Protocol):
    """Read access to the event queue."""

    def has_unfinished(self, id: Id) -> bool:
        """Whether a change of this capability waits, is being handled, or is a dead letter."""

    def depth(self) -> QueueDepth:
        """The length of the queue."""

    def dead_letters(self) -> Sequence[DeadLetter]:
        """Every dead letter, oldest first."""
