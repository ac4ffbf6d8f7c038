"""Exposure: counts of shown capabilities per provider."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from mats.domain.shortlist import Shortlist


class ProviderExposure(NamedTuple):
    """Counts of one provider; the empty name stands for capabilities without one."""

    provider: str
    answers: int
    """Answers that showed at least one of its capabilities."""
    first: int
    """Answers that showed one of them at rank 1."""
    shown: int
    candidates: int


class Exposure(NamedTuple):
    """Counts over the answers from `since` (the first) until `until` (the last; ISO 8601 in UTC, seconds)."""

    answers: int
    since: str | None
    until: str | None
    providers: Sequence[ProviderExposure]
    """Most shown first; ties by name."""


class ExposureLog(Protocol):
    """A bounded number of the latest answers. Safe to share between threads."""

    def record(self, shortlist: Shortlist) -> None:
        """Count an answer. Returns at once and never fails; storage follows within a second or two."""
        ...

    def flush(self) -> None:
        """Store the answers recorded so far.

        Raises:
            DependencyFailed: the storage cannot be written; the next flush retries.
        """
        ...

    def exposure(self) -> Exposure:
        """Counts over the latest answers, including those not flushed.

        Raises:
            DependencyFailed: the storage cannot be used.
        """
        ...
