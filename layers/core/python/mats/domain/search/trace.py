"""The trace of an answer, for logs, metrics and evaluation."""

from dataclasses import dataclass, field
from typing import NamedTuple

from mats.domain.errors import StorageUnusable
from mats.domain.profile.profile import Refusal
from mats.domain.prompts.usage import Usage
from mats.domain.search.verdict import Thresholds

STAGES = (
    "queue", "encode", "spelling", "products", "lexical", "neural", "exact", "rated", "memory", "lessons", "fetch",
    "rerank", "measure", "receipt",
)  # fmt: skip
"""Stages of an answer that are worth a graph; each has a metric of its time. Those of policies have their names."""


DEGRADABLE_PARTS = (
    "llm", "neural", "lexical", "bm25", "audiences", "receipt", "spelling", "products", "exact", "rated", "memory",
    "lessons",
)  # fmt: skip
"""Parts that an answer can lack because they failed or were late; each has a metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankStats:
    """Number of candidates the reranker scored, of scores out of range, and whether its reply was truncated."""

    scored: int = 0
    clipped: int = 0
    cut_off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSource:
    """Whose constants map the raw scores: `index/encoder`, and whether they were fitted to the pair that answers."""

    name: str
    fitted: bool


class Span(NamedTuple):
    """When a stage ran, in milliseconds of the monotonic clock."""

    stage: str
    began_ms: float
    ended_ms: float
    failed: bool = False


@dataclass(slots=True, kw_only=True)
class Trace:
    """The record of one answer; stages write to it while they run."""

    index: str
    encoder: str | None = None
    reranker: str | None = None
    prompt: str | None = None
    calibration: CalibrationSource | None = None
    thresholds: Thresholds | None = None  # Those of the verdict
    took_ms: dict[str, float] = field(default_factory=dict)  # The milliseconds of each stage
    spans: list[Span] = field(default_factory=list)  # In the order in which they ended; `total` is the whole answer
    degraded: list[str] = field(default_factory=list)  # The parts that failed or were late
    faults: list[str] = field(default_factory=list)  # The reasons
    without: list[str] = field(default_factory=list)  # The parts that are not configured
    notes: list[str] = field(default_factory=list)  # What its reader should know about it
    foreign: bool = False  # The encoder does not read the language of the query
    usage: Usage = field(default_factory=Usage)  # The reranker's
    rerank: RerankStats = RerankStats()
    unusable: StorageUnusable | None = None  # A fault of the storage that an operator must repair
    refused: list[Refusal] = field(default_factory=list)  # Models that refuse every request

    def branch(self) -> "Trace":
        """An empty trace of the same answer, for one of its retrievals; to be merged."""
        return Trace(index=self.index, encoder=self.encoder)

    def record(self, span: Span) -> None:
        """Record a stage that ended; the time of one that runs several times is the sum, without failures."""
        self.spans.append(span)
        if not span.failed:
            self.took_ms[span.stage] = self.took_ms.get(span.stage, 0.0) + span.ended_ms - span.began_ms

    def merge(self, other: "Trace") -> None:
        """Add what a concurrent retrieval recorded; the time of a stage is that of the slowest."""
        for stage, ms in other.took_ms.items():
            self.took_ms[stage] = max(ms, self.took_ms.get(stage, 0.0))
        self.spans += other.spans
        for own, others in (
            (self.degraded, other.degraded), (self.faults, other.faults), (self.without, other.without),
            (self.notes, other.notes),
        ):  # fmt: skip
            own.extend(text for text in others if text not in own)
        self.refused.extend(refusal for refusal in other.refused if refusal not in self.refused)
        self.foreign = self.foreign or other.foreign
        self.unusable = self.unusable or other.unusable

    def lose(self, part: str, fault: str) -> None:
        """Record that a part is missing from the answer, and why."""
        self.degraded.append(part)
        self.faults.append(fault)
