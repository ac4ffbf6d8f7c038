"""Clock, identifiers and metrics, and the counts of a local service."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from mats.domain.prompts.usage import Usage


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
