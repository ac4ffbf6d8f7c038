"""Learning from callers' reports on answers: recorded, remembered, and forgotten.

And from operators' lessons.
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound, Fault, ReceiptNotFound, RequestInvalid
from mats.domain.learning.outcome import TAUGHT, Event, Feedback, Outcome, Receipt, pack_vector, taught_id
from mats.domain.learning.remembered import remember
from mats.domain.search.query import Query
from mats.ports import Clock, Encoder, MemoryWriter, Outcomes, ProfileStore, Receipts, Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFeedback:
    """Accepts feedback of the caller that got the answer, on what the answer showed."""

    receipts: Receipts
    outcomes: Outcomes
    days: int  # For which receipts are kept
    texts: bool = True  # False: what was missing is stored as its hash

    def __call__(self, feedback: Feedback) -> Sequence[Outcome]:
        """Record all of it or nothing; the outcomes that are new. Durable on return, and safe to repeat.

        Raises ReceiptNotFound: there is no such answer, it was another caller's, or its receipt has expired;
        RequestInvalid: an id was not shown, or events of one id contradict each other; DependencyFailed: a store did
        not answer.
        """
        receipt = self.receipts.get(feedback.query_id)
        if receipt is None or receipt.caller != feedback.caller:
            raise ReceiptNotFound(feedback.query_id, self.days)
        if faults := list(_faults(receipt, feedback)):
            raise RequestInvalid(faults)
        if feedback.missing and not self.texts:
            digest = hashlib.sha256(feedback.missing.encode()).hexdigest()[:32]
            feedback = replace(feedback, missing=f"sha256:{digest}")
        return self.outcomes.record(receipt, feedback)


def _faults(receipt: Receipt, feedback: Feedback) -> Iterator[Fault]:
    succeeded = {outcome.id for outcome in feedback.outcomes if outcome.event is Event.SUCCEEDED}
    for position, outcome in enumerate(feedback.outcomes):
        if outcome.id not in receipt.shown:
            message = f"{outcome.id!r} is not among the results of this answer: report ids that it showed"
            yield Fault(f"outcomes.{position}.id", message)
        if outcome.id in succeeded and outcome.event in (Event.FAILED, Event.WRONG):
            message = f"{outcome.id!r} is reported as succeeded, too: report one of them"
            yield Fault(f"outcomes.{position}.event", message)


@dataclass(frozen=True, slots=True)
class ForgetRemoved:
    """Delete the outcomes of those that are not registered now; late and repeated removals do no harm."""

    registry: Registry
    outcomes: Outcomes

    def __call__(self, ids: Collection[Id]) -> None:
        """Raises DependencyFailed: a store did not answer; safe to repeat."""
        there = self.registry.get(ids)
        for id in dict.fromkeys(ids):
            if id not in there:
                self.outcomes.forget(id)


class Lesson(NamedTuple):
    """A request that an operator taught, and the capability that serves it."""

    request: str
    id: Id
    asleep: bool  # Its text was replaced or removed since, which the lesson says nothing of


@dataclass(frozen=True, slots=True, kw_only=True)
class Teach:
    """Keeps operators' lessons: requests, each with the capability that serves it, whether or not an answer showed it.

    A lesson is a success that nobody reported: under a query id that no answer has, of no caller, confirmed.
    """

    registry: Registry
    outcomes: Outcomes
    profiles: ProfileStore
    encoder: Encoder
    clock: Clock

    def __call__(self, text: str, id: Id) -> None:
        """Teach a request, in place of what was taught for it. Safe to repeat.

        Raises RequestInvalid: it is blank or too long; CapabilityNotFound: nothing is registered under the id;
        DependencyFailed: a store or the encoder did not answer.
        """
        Query.parse({"query": text})
        if id not in self.registry.get([id]):
            raise CapabilityNotFound(id)
        receipt = Receipt(
            query_id=taught_id(text),
            text=text,
            caller="",
            audiences=frozenset(),
            at=self.clock.now(),
            shown=(id,),
            encoder=self.encoder.name,
            vector=pack_vector(self.encoder.encode_query(text)),
        )
        lesson = Feedback(query_id=receipt.query_id, caller="", outcomes=(Outcome(id, Event.SUCCEEDED),))
        self.forget(text)
        self.outcomes.record(receipt, lesson)
        self.outcomes.confirm(receipt.query_id)

    def forget(self, text: str) -> bool:
        """Withdraw what was taught for a request; returns whether there was anything."""
        return self.outcomes.withdraw(taught_id(text))

    def lessons(self) -> Sequence[Lesson]:
        """Every request that was taught, in order of the text."""
        taught = (self.outcomes.of(query_id) for query_id in self.outcomes.query_ids() if query_id.startswith(TAUGHT))
        found = [(answer.receipt, id) for answer in taught if answer for id in answer.events]
        kept = self.profiles.get([id for _, id in found])
        return sorted(
            Lesson(receipt.text, id, asleep=id not in kept or kept[id].profile.is_newer_than(receipt.at))
            for receipt, id in found
        )


@dataclass(frozen=True, slots=True)
class Learn:
    """Bring the memory of answers up to what was reported on them; repeating it changes nothing.

    The state is read here, so the order of events and duplicates do not matter.
    """

    outcomes: Outcomes
    writer: MemoryWriter

    def __call__(self, query_ids: Collection[str]) -> None:
        """Raises DependencyFailed: a store did not answer; safe to repeat."""
        at = self.writer.version()
        answers = {query_id: self.outcomes.of(query_id) for query_id in query_ids}
        memories = {id: memory for id, answer in answers.items() if answer and (memory := remember(answer))}
        if memories:
            self.writer.remember(list(memories.values()), version=at)
        if gone := [query_id for query_id in answers if query_id not in memories]:
            self.writer.forget(gone, version=at)
