"""Receipts and feedback over the stores of a system."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from mats.bootstrap.stores import Stores
from mats.domain.capability.capability import Id
from mats.domain.shortlist.scoring import TrustRule
from mats.ports import Clock, MemoryWriter, Observer, Outcomes
from mats.settings import Settings
from mats.usecases.discover import Tallies
from mats.usecases.read_reliability import ReadReliability
from mats.usecases.receipts import LeaveReceipt

if TYPE_CHECKING:
    from mats.edge.feedback import FeedbackService
    from mats.usecases.learn import Learn


def leave_receipt(stores: Stores, settings: Settings) -> LeaveReceipt | None:
    """The writer of receipts; None where answers leave none."""
    if stores.receipts is None:
        return None
    return LeaveReceipt(later=stores.receipts, early=stores.early_receipts, texts=settings.log_queries == "text")


def feedback_service(
    stores: Stores, settings: Settings, clock: Clock, observe: Callable[[str], Observer]
) -> "FeedbackService | None":
    """The recorder of feedback; None where answers leave no receipts, or where it has a function of its own."""
    if stores.receipts is None or stores.outcomes is None:
        return None
    from mats.edge.feedback import FeedbackService  # noqa: PLC0415 - not for discovery in AWS
    from mats.usecases.record_feedback import RecordFeedback  # noqa: PLC0415 - as above

    record = RecordFeedback(receipts=stores.receipts, outcomes=stores.outcomes, clock=clock, days=settings.receipt_days)
    return FeedbackService(record, observe("feedback"))


def follow_outcomes(outcomes: Outcomes, writer: MemoryWriter) -> "Learn":
    """The learner, which updates the memory from the outcomes of answers."""
    from mats.usecases.learn import Learn  # noqa: PLC0415 - not for discovery

    return Learn(outcomes, writer)


def tallies_reader(stores: Stores, settings: Settings) -> Callable[[Collection[Id]], Tallies] | None:
    """Reads what callers reported; None where nothing is learned from it."""
    return stores.tally_book.tallies if stores.tally_book and settings.learning == "on" else None


def read_reliability(stores: Stores, settings: Settings, trust: TrustRule, clock: Clock) -> ReadReliability | None:
    """Reads the reliability of a capability; None where nothing is learned from reports."""
    tallies = tallies_reader(stores, settings)
    return ReadReliability(tallies=tallies, trust=trust, clock=clock) if tallies else None
