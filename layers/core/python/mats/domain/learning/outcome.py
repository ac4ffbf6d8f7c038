"""Outcomes that callers report about results of an answer."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from mats.domain.capability.capability import Id
from mats.domain.learning.receipt import Receipt


class Event(StrEnum):
    """An outcome of a result. Of several events of one result, the last of them in this order counts."""

    SELECTED = "selected"
    """The caller chose it."""
    SUCCEEDED = "succeeded"
    """It did what was asked for."""
    FAILED = "failed"
    """It was called and failed."""
    WRONG = "wrong"
    """It does something else than what was asked for."""


def effective_event(events: Collection[Event]) -> Event | None:
    """The event that counts, in whatever order they were reported; None if there is none."""
    return max(events, key=list(Event).index, default=None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One event of one result."""

    id: Id
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """A caller's report about an answer; `missing` says in its own words what it did not find."""

    query_id: str
    caller: str
    outcomes: tuple[Outcome, ...]
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedAnswer:
    """An answer with everything its caller has reported, which outlives the receipt.

    `confirmed`: by an operator. `missing` is the latest that was reported.
    """

    receipt: Receipt
    events: Mapping[Id, frozenset[Event]]
    missing: str = ""
    confirmed: bool = False
