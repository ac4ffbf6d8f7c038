"""Time, names, and what is said to have changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mats.domain.capability import Id
from mats.domain.profile import Cause


class Clock(Protocol):
    """Time, so that tests can hold it."""

    def now(self) -> str:
        """The current time, ISO 8601 in UTC."""
        ...

    def elapsed_ms(self) -> float:
        """Milliseconds since some fixed moment; never goes back."""
        ...


class Ids(Protocol):
    """Fresh identifiers."""

    def __call__(self) -> str:
        """An identifier never given before."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """What an event says: something about this capability changed. It carries the key, never the content."""

    id: Id
    cause: Cause


class QueueDepth(NamedTuple):
    """How many changes wait or are being handled, and how many are dead letters."""

    waiting: int
    dead: int


class DeadLetter(NamedTuple):
    """A change that failed too often, and why."""

    id: Id
    reason: str


class QueueMonitor(Protocol):
    """What can be read of the event queue."""

    def has_unfinished(self, id: Id) -> bool:
        """Whether a change of this capability waits, is being handled, or is a dead letter."""
        ...

    def depth(self) -> QueueDepth:
        """The length of the queue."""
        ...

    def dead_letters(self) -> Sequence[DeadLetter]:
        """Every dead letter, oldest first."""
        ...


class Event(NamedTuple):
    """A change as it waits on the local event path, oldest first by `seq`."""

    seq: int
    event_id: str
    source: str
    change: str
    id: str
    time: str
    attempts: int
