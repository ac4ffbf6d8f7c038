"""Record what a caller reports about an answer that it got."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mats.domain.errors import Fault, ReceiptNotFound, RequestInvalid
from mats.domain.learning.outcome import Event, Feedback, Outcome
from mats.domain.learning.receipt import Receipt
from mats.ports import Clock, Outcomes, Receipts


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFeedback:
    """Accepts feedback of the caller that got the answer, on what the answer showed; receipts are kept for `days`."""

    receipts: Receipts
    outcomes: Outcomes
    clock: Clock
    days: int

    def __call__(self, feedback: Feedback) -> Sequence[Outcome]:
        """Record all of it or nothing; the outcomes that are new. Durable on return, and safe to repeat.

        Raises:
            ReceiptNotFound: there is no such answer, it was another caller's, or its receipt has expired.
            RequestInvalid: an id was not shown, or events of one id contradict each other.
            DependencyFailed: a store did not answer.
        """
        receipt = self.receipts.get(feedback.query_id)
        if receipt is None or receipt.caller != feedback.caller:
            raise ReceiptNotFound(feedback.query_id, self.days)
        faults = [*_not_shown(receipt, feedback), *_contradictions(feedback)]
        if faults:
            raise RequestInvalid(faults)
        return self.outcomes.record(receipt, feedback, self.clock.now())


def _not_shown(receipt: Receipt, feedback: Feedback) -> Iterator[Fault]:
    for position, outcome in enumerate(feedback.outcomes):
        if outcome.id not in receipt.shown:
            message = f"{outcome.id!r} is not among the results of this answer: report ids that it showed"
            yield Fault(f"outcomes.{position}.id", message)


def _contradictions(feedback: Feedback) -> Iterator[Fault]:
    succeeded = {outcome.id for outcome in feedback.outcomes if outcome.event is Event.SUCCEEDED}
    for position, outcome in enumerate(feedback.outcomes):
        if outcome.id in succeeded and outcome.event in (Event.FAILED, Event.WRONG):
            message = f"{outcome.id!r} is reported as succeeded, too: report one of them"
            yield Fault(f"outcomes.{position}.event", message)
