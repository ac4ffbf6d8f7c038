"""Response models of the API, which /openapi.json documents."""

import json
from dataclasses import asdict
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.capability.capability import Kind, Lifecycle
from mats.domain.learning.reliability import Reliability
from mats.domain.profile.profile import Profile, Status
from mats.domain.protocols.invocation import Invocation, SkillReading, from_text
from mats.domain.ranking.ranking import Signal, Verdict
from mats.domain.shortlist.shortlist import Result, Shortlist
from mats.edge.part_answer import PartAnswer, part_answers
from mats.edge.reliability_answer import ReliabilityAnswer
from mats.edge.why import Why


class _ResponseModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RankedCapability(_ResponseModel):
    """One result, best first."""

    id: str
    kind: Kind
    name: str
    namespace: str
    version: str = ""
    score: float = Field(description="Weighted mean of the signals present, 0 to 1.", ge=0, le=1)
    signals: dict[Signal, float] = Field(description="The measured signals, each 0 to 1.")
    weights: dict[Signal, float] = Field(description="The weight of each signal; they sum to 1.")
    relevance: float = Field(description="The `llm` signal, or the `retrieval` score if it is missing.", ge=0, le=1)
    summary: str = ""
    endpoint: str = ""
    provider: str = ""
    provider_verified: bool = Field(
        default=False, description="True if operators verified the provider, false if its owner claims it."
    )
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    enriched: bool = Field(
        description="True if an LLM wrote the profile, false if it is made from the registration alone."
    )
    suspicious: list[str] = Field(description="Reasons for caution; they do not change the score.")
    alternates: list[str] = Field(
        default=[],
        description="Ids of capabilities with nearly the same text that were left out for this one and others, at most "
        "ten; named once, by the best of their near-duplicates.",
    )
    why: Why | None = None

    @classmethod
    def of(cls, result: Result) -> Self:
        """A result; numbers are rounded to four places."""
        profile = result.candidate.profile
        return cls(
            id=profile.id,
            kind=profile.indexed_kind,
            name=profile.name,
            namespace=profile.namespace,
            version=profile.version,
            score=round(result.score, 4),
            signals={signal: round(value, 4) for signal, value in result.signals.items()},
            weights={signal: round(value, 4) for signal, value in result.weights.items()},
            relevance=round(result.relevance, 4),
            summary=profile.enrichment.summary,
            endpoint=profile.endpoint,
            provider=profile.provider,
            provider_verified=profile.provider_verified,
            lifecycle=profile.lifecycle,
            enriched=profile.enriched,
            suspicious=list(result.suspicious),
            alternates=list(result.alternates),
            why=Why.of(result.why, result.candidate.used_for) if result.why else None,
        )


class Cost(_ResponseModel):
    """The cost of the reranker's call; zero without a reply, though that may be billed.

    It excludes embedding the query, which costs less than a hundredth of it.
    """

    input_tokens: int
    output_tokens: int
    usd: float | None = Field(description="Null if the price of the model is unknown.")


class CalibrationVersion(_ResponseModel):
    """The constants that map raw scores to `retrieval`, and without a reranker to a verdict."""

    name: str = Field(description="Index and encoder that the constants were fitted to.")
    fitted: bool = Field(
        description="False if the encoder of this answer has no constants of its own: compare its `retrieval` and its "
        "verdicts without a reranker with care."
    )


class ThresholdsAnswer(_ResponseModel):
    """The relevance from which a result counts as a match, or as a weak one, in this answer."""

    match: float
    weak: float


class Versions(_ResponseModel):
    """The index, prompt and models behind this answer."""

    index: str
    prompt: str | None
    models: dict[str, str]
    calibration: CalibrationVersion | None = None


class Answer(_ResponseModel):
    """A ranked shortlist."""

    query_id: str
    verdict: Verdict
    intent: str | None = Field(description="The capability type inferred from the query.")
    degraded: list[str] = Field(
        description="Parts that failed or were late: llm, neural, lexical, bm25, audiences, memory, "
        "receipt, reliability."
    )
    without: list[str] = Field(default=[], description="Parts that are not configured or switched off: llm, neural.")
    notes: list[str] = Field(
        default=[],
        description="What limits or narrows this answer: a language that the encoder does not read, a namespace.",
    )
    thresholds: ThresholdsAnswer | None = Field(
        default=None, description="What the verdict compares the relevance of the best result with."
    )
    results: list[RankedCapability]
    parts: list[PartAnswer] | None = Field(
        default=None, description="The steps of a request that asked for parts, in its order; null for another one."
    )
    uncovered: list[str] = Field(default=[], description="The texts of the parts whose verdict is `none`.")
    took_ms: dict[str, float]
    cost: Cost
    versions: Versions

    @classmethod
    def of(cls, shortlist: Shortlist) -> Self:
        trace = shortlist.trace
        models = {"rerank": trace.reranker, "embed": trace.encoder}
        return cls(
            query_id=shortlist.query_id,
            verdict=shortlist.verdict,
            intent=shortlist.intent,
            degraded=list(shortlist.degraded),
            without=list(shortlist.without),
            notes=list(shortlist.notes),
            thresholds=ThresholdsAnswer(**asdict(trace.thresholds)) if trace.thresholds else None,
            results=[RankedCapability.of(result) for result in shortlist.results],
            parts=part_answers(shortlist) or None,
            uncovered=list(shortlist.uncovered_parts),
            took_ms={stage: round(ms, 1) for stage, ms in trace.took_ms.items()},
            cost=Cost(
                input_tokens=trace.usage.input_tokens,
                output_tokens=trace.usage.output_tokens,
                usd=trace.usage.usd,
            ),
            versions=Versions(
                index=trace.index,
                prompt=trace.prompt,
                models={k: v for k, v in models.items() if v},
                calibration=CalibrationVersion(**asdict(trace.calibration)) if trace.calibration else None,
            ),
        )


class RefusedModel(_ResponseModel):
    """A model that refuses every request as it is configured."""

    role: str = Field(description="`writer` or `encoder`.")
    model: str
    cause: str


class Capability(_ResponseModel):
    """One capability's profile."""

    id: str
    kind: Kind
    name: str
    namespace: str
    version: str
    status: Status
    error: str = Field(description="The faults of the latest registration; the profile is that of the last valid one.")
    enriched: bool
    summary: str
    action: str
    keywords: list[str]
    positive_examples: list[str]
    negative_examples: list[str]
    description: str
    endpoint: str
    input_schema: dict[str, Any] | None = Field(default=None, description="JSON Schema of its input, from its owner.")
    invocation: Invocation | None = Field(
        default=None, description="How it is called; null if its owner gave no way. mats itself calls nothing."
    )
    provider: str
    provider_verified: bool = Field(
        default=False, description="True if operators verified the provider, false if its owner claims it."
    )
    tags: list[str]
    type_tags: list[str]
    lifecycle: Lifecycle
    trust: int | None
    reliability: ReliabilityAnswer | None = Field(
        default=None, description="Null if nothing is reported that counts for this caller."
    )
    suspicious: list[str] = Field(description="Reasons for caution.")
    notes: list[str]
    refused: list[RefusedModel] = Field(
        default=[], description="Models that the profile lacks; empty for callers who may not see internal errors."
    )
    rev: int

    @classmethod
    def of(cls, profile: Profile, *, internal_details: bool = False, reliability: Reliability | None = None) -> Self:
        """The profile as a caller may see it."""
        if profile.kind is None or profile.source is None:
            raise ValueError(f"{profile.id} is indexed without content")
        same: dict[str, Any] = profile.model_dump(include=cls.model_fields.keys() & Profile.model_fields.keys())
        same["refused"] = same["refused"] if internal_details else []
        same["invocation"] = from_text(profile.invocation)
        same["input_schema"] = json.loads(profile.input_schema or "null")
        same["reliability"] = ReliabilityAnswer.of(reliability) if reliability else None
        return cls(id=profile.id, description=profile.source.description, **profile.enrichment.model_dump(), **same)


class Instructions(_ResponseModel):
    """The instructions of a skill: text of its owner, not to be trusted."""

    id: str
    instructions: str = Field(description="Markdown; cut off after 64,000 bytes with a line that says so.")
    files: list[str] = Field(description="The files of the skill's folder, which its owner keeps.")
    suspicious: list[str] = Field(description="Reasons for caution.")

    @classmethod
    def of(cls, profile: Profile) -> Self:
        invocation = from_text(profile.invocation)
        files = list(invocation.files) if isinstance(invocation, SkillReading) else []
        return cls(id=profile.id, instructions=profile.instructions, files=files, suspicious=list(profile.suspicious))


class FaultAnswer(_ResponseModel):
    """A fault of one field."""

    field: str
    message: str


class Problem(_ResponseModel):
    """A problem document (RFC 9457, `application/problem+json`)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[FaultAnswer] = []


class Health(_ResponseModel):
    """The state of the service."""

    status: str
    index: str
    encoder: str | None
    reranker: str | None
    weights: dict[Signal, float] = Field(default={}, description="The weight of each signal if all are present.")
