"""The system's reports to those who watch it: log, metrics and spans read the same values."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityError
from mats.domain.learning.outcome import Feedback, Outcome
from mats.domain.profile.profile import ChangeResult, Refusal
from mats.domain.prompts.usage import Usage
from mats.domain.ranking.query import ANYWHERE, Scope
from mats.domain.shortlist.rank import Shortlist


class Clock(Protocol):
    """The time; tests replace it."""

    def now(self) -> str:
        """The current time, ISO 8601 in UTC."""

    def elapsed_ms(self) -> float:
        """Milliseconds of a monotonic clock."""


class Ids(Protocol):
    """A source of unique identifiers."""

    def __call__(self) -> str:
        """A new identifier."""


class Measure(NamedTuple):
    """A number and its unit."""

    value: float
    unit: Literal["Count", "Milliseconds", "None"]


NO_DIMENSIONS: Mapping[str, str] = MappingProxyType({})


class Metrics(Protocol):
    """Emits time series. Never fails."""

    def __call__(self, measures: Mapping[str, Measure], dimensions: Mapping[str, str] = NO_DIMENSIONS) -> None:
        """Emit these at one time, under dimensions in addition to the service's name."""


class ProviderExposure(NamedTuple):
    """Counts of one provider; the empty name stands for capabilities without one."""

    provider: str
    answers: int
    """Answers that showed at least one of its capabilities."""
    first: int
    """Answers that showed one of them at rank 1."""
    shown: int
    candidates: int
    verified: bool = False
    """True if operators verified the provider; a claimed one is counted apart."""


class Exposure(NamedTuple):
    """Counts over the answers from `since` (the first) until `until` (the last; ISO 8601 in UTC, seconds)."""

    answers: int
    since: str | None
    until: str | None
    providers: Sequence[ProviderExposure]
    """Most shown first; ties by name, then a claimed one before a verified one."""


class ServiceState(NamedTuple):
    """Contents and spending of a local service, at one moment."""

    capabilities: Mapping[tuple[str, str], int]
    """By kind (`unknown` until a profile tells it) and state: `waiting`, `rejected`, `raw` or `enriched`."""
    findable: int
    waiting: int
    """Changes in the queue, or being handled."""
    oldest_s: float
    """Seconds since the first of those in the queue was made; 0 without any."""
    dead: int
    sources: Mapping[str, int]
    """By the result of their latest sync: `ok`, `failed` or `never`."""
    vectors: Mapping[bool, int]
    """How often the vector of a query was known, and not known."""
    usage: Mapping[str, Usage]
    """By model."""


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
