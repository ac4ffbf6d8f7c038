"""The system's reports to those who watch it: log, metrics and spans read the same values."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityError
from mats.domain.learning.outcome import Feedback, Outcome
from mats.domain.profile.profile import ChangeResult, Refusal
from mats.domain.prompts.usage import Usage
from mats.domain.ranking.query import ANYWHERE, Scope
from mats.domain.shortlist.rank import Shortlist


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer to a search; its trace has the stages. `request_id` is that of the log of requests, if there is one."""

    shortlist: Shortlist
    audiences: Collection[str] = ()
    scope: Scope = ANYWHERE
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFailed:
    """An operation of the application that failed by no fault of its caller."""

    operation: str
    error: CapabilityError
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRecorded:
    """A feedback, and its outcomes that were new."""

    feedback: Feedback
    new: Sequence[Outcome]
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProcessed:
    """A batch of changes, and what its models cost."""

    outcomes: Mapping[Id, ChangeResult]
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDelayed:
    """A batch of so many changes that will be delivered again, because a store or the index did not answer."""

    changes: int
    error: CapabilityError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsRefused:
    """Models that refuse every request, once for each capability or answer that lacks them."""

    refused: Collection[Refusal]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterCalled:
    """A call of the writer: its start on the monotonic clock and its time, in milliseconds; `fault` if it failed."""

    model: str
    began_ms: float
    took_ms: float
    usage: Usage = field(default_factory=Usage)
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHandled:
    """A request of the local service, after its response; its start on the monotonic clock and its time, in ms.

    `route` is the template of its path, of which there is a fixed number. `carrier` has the headers of its trace
    context. `answers` are those it got, several where MCP sends a batch.
    """

    method: str
    route: str
    status: int
    began_ms: float
    took_ms: float
    request_id: str
    carrier: Mapping[str, str] = field(default_factory=dict)
    answers: Sequence[Answered] = ()


Observation: TypeAlias = (
    Answered
    | OperationFailed
    | FeedbackRecorded
    | BatchProcessed
    | BatchDelayed
    | ModelsRefused
    | WriterCalled
    | RequestHandled
)


class Observer(Protocol):
    """Watches the system. Safe to call from several threads; returns at once and never fails."""

    def __call__(self, observation: Observation) -> None:
        """Take note of it, or ignore it."""
