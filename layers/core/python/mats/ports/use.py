"""How capabilities are used, for readers that keep sums of their own.

Each operation may raise DependencyFailed: the store did not answer; safe to repeat.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event


class ShownAnswer(NamedTuple):
    """When an answer was given (ISO 8601, UTC), what it showed, and whether its verdict was `weak` or `none`."""

    at: str
    shown: Sequence[Id]
    unmatched: bool


class ShownAnswers(NamedTuple):
    """Answers, and the position to ask from next."""

    position: int
    answers: Sequence[ShownAnswer]


class OutcomeCounts(NamedTuple):
    """Results of a capability by their effective event, and the times of the latest success and failure (ISO 8601)."""

    selected: int = 0
    succeeded: int = 0
    failed: int = 0
    wrong: int = 0
    last_success: str | None = None
    last_failure: str | None = None


class ChangedOutcomes(NamedTuple):
    """Capabilities with new outcomes, and the position to ask from next."""

    position: int
    ids: Collection[Id]


class ReportedResult(NamedTuple):
    """The effective event of one result, with its request; the text is empty if texts are not stored."""

    id: Id
    event: Event
    at: str
    text: str
    caller: str
    query_id: str


class UseLog(Protocol):
    """Answers and outcomes in the order in which they were stored."""

    def answers(self, since: int | None, *, most: int) -> ShownAnswers:
        """At most so many answers after a position, the oldest first; None: the latest so many."""

    def changes(self, since: int | None) -> ChangedOutcomes:
        """Every capability with an outcome stored or changed after a position; None: every one with an outcome."""

    def counts(self, ids: Collection[Id]) -> Mapping[Id, OutcomeCounts]:
        """The counts of each of these that has any."""

    def latest_failures(self, *, most: int) -> Sequence[ReportedResult]:
        """At most so many results that failed or were wrong, the latest first, among the latest reported answers."""
