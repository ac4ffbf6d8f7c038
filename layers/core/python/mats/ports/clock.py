"""Time and identifiers."""

from typing import Protocol


class Clock(Protocol):
    """The time; tests replace it."""

    def now(self) -> str:
        """The current time, ISO 8601 in UTC."""
        ...

    def elapsed_ms(self) -> float:
        """Milliseconds of a monotonic clock."""
        ...


class Ids(Protocol):
    """A source of unique identifiers."""

    def __call__(self) -> str:
        """A new identifier."""
        ...
