"""The answer to a query: candidates with their measurements, in their places."""

from collections.abc import Mapping
from dataclasses import dataclass

from mats.domain.explain import Why
from mats.domain.profile import Profile
from mats.domain.query import Query
from mats.domain.ranking import Signal, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a model call cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A profile that retrieval found, with its raw measurements; None where a side of the search was off."""

    profile: Profile
    bm25: float | None
    cosine: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A candidate in its place on the shortlist."""

    candidate: Candidate
    score: float
    signals: Mapping[Signal, float]
    weights: Mapping[Signal, float]
    relevance: float
    why: Why | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortlist:
    """The answer, with everything that an operator needs to see why. Only the first `shown` are for the caller."""

    query_id: str
    query: Query
    verdict: Verdict
    intent: str | None
    degraded: tuple[str, ...]
    faults: tuple[str, ...]
    ranked: tuple[Result, ...]
    shown: int
    took_ms: Mapping[str, float]
    usage: Usage
    index: str
    encoder: str | None
    reranker: str | None
    prompt: str | None

    @property
    def results(self) -> tuple[Result, ...]:
        """What the caller gets."""
        return self.ranked[: self.shown]
