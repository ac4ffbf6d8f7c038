"""The answer to a query: candidates with their measurements, in their places."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mats.domain.explain import Why
from mats.domain.profile import Profile
from mats.domain.query import Query
from mats.domain.ranking import Signal, Verdict
from mats.domain.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A profile that retrieval found, with its raw measurements; None where a side of the search was off.

    `pairs` counts the neighbouring words of the query that stand together in the profile, too.
    """

    profile: Profile
    bm25: float | None
    cosine: float | None
    pairs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A candidate in its place on the shortlist."""

    candidate: Candidate
    score: float
    signals: Mapping[Signal, float]
    weights: Mapping[Signal, float]
    relevance: float
    suspicious: tuple[str, ...] = ()
    why: Why | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the reranker's reply was like: how many candidates it scored, how many scores were out of range."""

    scored: int = 0
    clipped: int = 0
    cut_off: bool = False


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
    judged: Judged = Judged()

    @property
    def results(self) -> tuple[Result, ...]:
        """What the caller gets."""
        return self.ranked[: self.shown]

    def without(self, part: str, why: str) -> "Shortlist":
        """The same answer, saying that it was made without this part."""
        return replace(self, degraded=(*self.degraded, part), faults=(*self.faults, why))
