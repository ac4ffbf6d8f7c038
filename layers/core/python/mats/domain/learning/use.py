"""Use of capabilities, and requests that nothing served: sums over answers and what callers reported on them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Receipt, ReportedAnswer, effective_event
from mats.domain.search.verdict import Verdict

FIVE = 5  # Places of an answer that count as shown


@dataclass(frozen=True, kw_only=True)
class GivenAnswer:
    """An answer, and what its caller has reported on it, if anything."""

    receipt: Receipt
    reported: ReportedAnswer | None = None

    @cached_property
    def events(self) -> Mapping[Id, Event]:
        """The effective event of each result that was reported on."""
        events = self.reported.events.items() if self.reported else ()
        return {id: event for id, reported in events if (event := effective_event(reported))}

    @cached_property
    def winners(self) -> Sequence[Id]:
        """The results that the caller chose, and that neither failed nor were wrong."""
        return [id for id, event in self.events.items() if event in (Event.SELECTED, Event.SUCCEEDED)]

    @property
    def missing(self) -> str:
        return self.reported.missing if self.reported else ""

    @property
    def is_unserved(self) -> bool:
        """True if the caller misses something, or the answer has no match and none of its results served.

        The verdict on a request with filters beside the kind says nothing: a filter may be its reason.
        """
        receipt = self.receipt
        unmatched = receipt.verdict in (Verdict.NONE, Verdict.WEAK) and (bool(receipt.kinds) or not receipt.narrowed)
        return bool(self.missing) or (unmatched and not self.winners)


@dataclass(slots=True)
class Use:
    """Answers by what a capability was in them."""

    asked: int = 0  # Among the results
    shown: int = 0  # Among the first five
    first: int = 0
    chosen: int = 0  # Its caller took it, whether or not it then did what was asked for
    succeeded: int = 0
    lost_to: Counter[Id] = field(default_factory=Counter)
    """Results that served instead, in answers that had this one among the first five."""


@dataclass(slots=True, kw_only=True)
class UnservedRequest:
    """Requests with one text, or without texts those with one nearest capability."""

    text: str  # What is missing, or the request; empty if texts are not stored
    nearest: Id | None  # The best candidate of the latest of them
    last: str  # The time of the latest, ISO 8601 in UTC
    requests: int = 0


def use_by_id(answers: Iterable[GivenAnswer]) -> dict[Id, Use]:
    """The use of every capability that was shown or reported on."""
    found: dict[Id, Use] = {}
    for answer in answers:
        shown = answer.receipt.shown
        for place, id in enumerate(shown):
            use = found.setdefault(id, Use())
            use.asked += 1
            use.shown += place < FIVE
            use.first += place == 0
            if place < FIVE and id not in answer.winners:
                use.lost_to.update(answer.winners)
        for id, event in answer.events.items():
            use = found.setdefault(id, Use())
            use.chosen += event is not Event.WRONG
            use.succeeded += event is Event.SUCCEEDED
    return found


def unserved_requests(answers: Iterable[GivenAnswer]) -> list[UnservedRequest]:
    """The requests that nothing served, most frequent first; `answers` has the latest first.

    An answer that nobody reported on counts as the others with its text: if a result of one succeeded, it is served.
    """
    answers, found = list(answers), dict[tuple[str, Id | None], UnservedRequest]()
    served = {_fold(each.receipt.text) for each in answers if Event.SUCCEEDED in each.events.values()} - {""}
    for answer in answers:
        if answer.is_unserved and (answer.reported or _fold(answer.receipt.text) not in served):
            receipt, text = answer.receipt, answer.missing or answer.receipt.text
            key = (_fold(text), None if text else receipt.nearest)
            one = found.setdefault(key, UnservedRequest(text=text, nearest=receipt.nearest, last=receipt.at))
            one.requests += 1
    return sorted(found.values(), key=lambda one: -one.requests)  # stable: of equals the latest first


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())
