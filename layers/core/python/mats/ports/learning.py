"""Stores for learning from use: receipts of answers, and the outcomes that callers report.

Each operation may raise DependencyFailed: the store did not answer; safe to repeat.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt, ReportedAnswer
from mats.domain.learning.reliability import Tally
from mats.domain.learning.remembered import Near, Remembered
from mats.ports.models import Vector


class Receipts(Protocol):
    """The receipts of the latest answers; each expires after some days."""

    def put(self, receipt: Receipt) -> None:
        """Store a receipt, or replace the one of its query id."""

    def get(self, query_id: str) -> Receipt | None:
        """The receipt of an answer; None if it is unknown or has expired."""


class ReceiptLog(Protocol):
    """The receipts that are kept, for those who look at all of them."""

    def since(self, at: str, *, most: int) -> Sequence[Receipt]:
        """Receipts from a time on, ISO 8601 in UTC, the latest first."""


class Grouped(NamedTuple):
    """Positions of the vectors of a group, its leader first, and of the others beside it."""

    members: Sequence[int]
    beside: Sequence[int]


class Grouping(Protocol):
    """Groups vectors that resemble each other."""

    def __call__(self, vectors: Sequence[bytes], others: Sequence[bytes], *, least_cosine: float) -> Sequence[Grouped]:
        """Each vector in one group; all are packed as in receipts. Deterministic."""


class TallyBook(Protocol):
    """The sums of what callers have reported, by capability and caller."""

    def tallies(self, ids: Collection[Id]) -> Mapping[Id, Sequence[Tally]]:
        """The tallies of each of these that has any, in order of caller."""


class Outcomes(TallyBook, Protocol):
    """Reported outcomes, and their sums."""

    def record(self, receipt: Receipt, feedback: Feedback, at: str) -> Sequence[Outcome]:
        """Store what is new in feedback on the receipt's answer; returns its new outcomes.

        When this returns, everything is durable. Each event of a result is stored and counted once, however often and
        in whatever order it is reported; of a result's events, the effective one counts (`effective_event`). A receipt
        is kept with the first feedback.
        """

    def of(self, query_id: str) -> ReportedAnswer | None:
        """The outcomes reported on an answer, by a consistent read."""

    def confirm(self, query_id: str, *, confirmed: bool = True) -> bool:
        """Set an operator's confirmation; returns whether there is feedback on this answer."""

    def query_ids(self, *, after: str = "") -> Iterator[str]:
        """The id of every answer with feedback once, in an order that lasts; with `after`, those that follow it."""

    def forget(self, id: Id, *, lessons: bool = False) -> int:
        """Delete the outcomes and tallies of a capability; the number of outcomes deleted.

        What operators taught stays, unless it is named: a capability that is registered again has it.
        """

    def withdraw(self, query_id: str) -> bool:
        """Delete what is reported on an answer, but for tallies: a lesson is in none. Returns whether there is any."""


class Memory(Protocol):
    """Remembered requests, by the similarity of their vectors; those of another encoder are not found."""

    def nearest(self, vector: Vector, *, depth: int, without: Collection[str] = ()) -> Sequence[Near]:
        """At most `depth` remembered requests by cosine, best first, ties by query id; none of these callers.

        Beside them the `LESSONS` nearest that an operator taught, so that no number of callers hides these.
        """

    def with_outcomes(self, ids: Collection[Id], caller: str, *, without: Collection[str] = ()) -> Mapping[Id, int]:
        """Those of these that were used for any remembered request that counts for a caller.

        That is one of the caller itself, or one that an operator confirmed, or those of two callers not in `without`;
        lessons are about one request and count for none of these.
        The value is the number of the former two: no other caller can change it.
        """


class MemoryWriter(Protocol):
    """Writes what `Memory` reads; what is written is found within a second.

    A write with an older version than the latest one of the same query id is a no-op.
    """

    def version(self) -> int:
        """A version for what is read from now on."""

    def remember(self, memories: Sequence[Remembered], *, version: int) -> None:
        """Store requests, or replace those of the same query ids."""

    def forget(self, query_ids: Collection[str], *, version: int) -> None:
        """Remove requests."""


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
