"""The models of requests and answers of the API, which /openapi.json documents."""

import json
import shlex
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, Self, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from mats.domain.capability.capability import Id, Kind, Lifecycle
from mats.domain.capability.faults import RequestModel
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.origin import Placed
from mats.domain.profile.profile import Profile, Status
from mats.domain.protocols.catalogue import Invocation, from_text
from mats.domain.protocols.skill import SkillReading
from mats.domain.search.candidate import Result
from mats.domain.search.query import Filter, Label, Query
from mats.domain.search.shortlist import Shortlist
from mats.domain.search.signals import Signal
from mats.domain.search.verdict import Verdict
from mats.domain.text.fence import spell_out

MAX_PAGE = 100


class Parameters(RequestModel):
    """The parameters of a query string. Those that are tuples may be repeated.

    A route that names such a model documents its parameters, and its handler gets them parsed.
    """

    unknown: ClassVar[str] = ""  # The message for a parameter that is none of these; empty: as the model's `extra` says

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]]) -> Self:
        """Parse the values of each name, percent-decoded. Raises RequestInvalid: with every fault."""
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        if cls.model_config.get("extra") == "ignore":
            query = {name: values for name, values in query.items() if name in fields}
        repeatable = {name for name, field in fields.items() if get_origin(field.annotation) is tuple}
        faults = [
            Fault(name, cls.unknown if name not in fields and cls.unknown else "is given more than once: give it once")
            for name, values in sorted(query.items())
            if (name not in fields and cls.unknown) or (len(values) > 1 and name not in repeatable)
        ]
        if faults:
            raise RequestInvalid(faults)
        return cls.parse({name: list(v) if name in repeatable else v[0] for name, v in query.items() if v})


def _check_digits(value: object) -> object:
    """Digits only: pydantic would also take ` 5`, `5.0` and `1_0`."""
    if isinstance(value, str) and not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise ValueError("must be a whole number")
    return value


def _check_truth(value: object) -> object:
    """Pydantic would also take `yes`, `on` and `1`."""
    if isinstance(value, str) and value not in ("true", "false"):
        raise ValueError("must be `true` or `false`")
    return value


WHOLE = BeforeValidator(_check_digits)


class Format(StrEnum):
    """The API whose tools a shortlist is answered as."""

    MCP_TOOLS = "mcp_tools"
    BEDROCK_TOOL_CONFIG = "bedrock_tool_config"
    CLAUDE_TOOL_REFERENCE = "claude_tool_reference"
    OPENAI_TOOLS = "openai_tools"


class DiscoverParameters(Parameters):
    """The parameters of `POST /discover`."""

    unknown = "is not a query parameter; only `format` is, anything else belongs in the body"
    format: Format | None = Field(default=None, description="As in the body.")


class DiscoverRequest(Query):
    """A request for capabilities: the body of `POST /discover`."""

    format: Format | None = Field(
        default=None, description="Answer with tools for a model instead of results. Also accepted in the query string."
    )
    known: Annotated[tuple[Label, ...], Field(max_length=1_000)] | None = Field(
        default=None,
        description="With a `format`: names (or ids) of tools that the caller has. Only others are defined, in order "
        "of name, so that a session can append them; begin it with an empty list.",
    )

    @field_validator("known")
    @classmethod
    def _requires_format(cls, value: Any, info: ValidationInfo) -> Any:
        if value is not None and "format" in info.data and info.data["format"] is None:
            raise ValueError("needs a `format`: it is about ready-made tools")
        return value

    @classmethod
    def of(cls, body: Any, parameters: DiscoverParameters) -> Self:
        """Parse a body together with a query string.

        Raises:
            RequestInvalid: the body is invalid, or differs from the query string.
        """
        if parameters.format and isinstance(body, dict):
            if body.get("format", parameters.format) != parameters.format:
                message = "differs between the body and the query string: give it in one of them"
                raise RequestInvalid([Fault("format", message)])
            body = {**body, "format": parameters.format}
        return cls.parse(body)


class ListParameters(Parameters):
    """The parameters of `GET /capabilities`."""

    namespace: Annotated[tuple[Label, ...], Field(max_length=50)] = Field(
        default=(), description="In one of these namespaces or below; may be repeated."
    )
    kind: tuple[Kind, ...] = Field(default=(), description="One of these kinds; may be repeated.")
    tag: Annotated[tuple[Label, ...], Field(max_length=50)] = Field(
        default=(), description="With every one of these tags; may be repeated."
    )
    limit: Annotated[int, Field(ge=1, le=MAX_PAGE), WHOLE] = 50
    after: Annotated[str, Field(max_length=2_000)] = Field(default="", description="`following` of the page before.")

    @property
    def filter(self) -> Filter:
        """The filter without the caller's audiences."""
        return Filter(frozenset(self.kind), frozenset(self.namespace), frozenset(self.tag))


class CapabilityParameters(Parameters, extra="ignore"):
    """The parameters of `GET /capabilities/{id}`."""

    snippets: Annotated[bool, BeforeValidator(_check_truth)] = Field(
        default=False, description="Also texts to copy that call it."
    )


Rounded = Annotated[float, AfterValidator(lambda value: round(value, 4))]  # A number with four decimal places
_Milliseconds = Annotated[float, AfterValidator(lambda value: round(value, 1))]
_EFFECTS = "What its owner says of its effects, by an MCP tool's annotations or the method of an HTTP call."
_VERIFIED = "True if operators verified the provider, false if its owner claims it."


class ResponseModel(BaseModel):
    """Made from a value of the domain with the same attributes by `model_validate`."""

    model_config = ConfigDict(extra="forbid", from_attributes=True)

    @classmethod
    def from_values(cls, *values: Any, **more: Any) -> Self:
        """Made from `more`, and from the attributes of these values, of which later ones come first."""
        for value in reversed(values):
            shared = _shared_names(cls, value.__class__)
            more |= {name: getattr(value, name) for name in shared if name not in more}
        return cls.model_validate(more)


@cache
def _shared_names(model: type[BaseModel], other: type) -> list[str]:
    """The fields of a model that values of another class have as attributes."""
    return [name for name in model.model_fields if name in other.__annotations__ or hasattr(other, name)]


class PastRequests(ResponseModel):
    """Similar past requests that this capability served."""

    requests: int = Field(description="How many of the most similar ones vote for it.")
    callers: int = Field(description="Of how many callers these are.")
    similarity: Rounded = Field(description="The best cosine of one of them with the query.")
    texts: list[str] = Field(default=[], description="Up to three of them that the caller may read, best first.")


class Why(ResponseModel):
    """The words of the query that match, the fields they match in, and similar past requests."""

    matched: list[str]
    fields: list[str]
    spelled: list[str] = Field(
        default=[], description="The matched words as the capability spells them, in lower case."
    )
    used_for: PastRequests | None = None


class Excluded(ResponseModel):
    """A capability that the request asked to leave out, as it cannot be called now with what the caller holds."""

    id: str
    because: str


class Withheld(ResponseModel):
    """A result that its flags keep from agents: it is found, and not handed over as a tool."""

    id: str
    reasons: list[str]
    clear: str = Field(description="What an operator does to hand it over.")

    @classmethod
    def of(cls, profile: Profile) -> Self:
        id = spell_out(profile.id)
        quoted = shlex.quote(id)
        local = f"an operator reads `mats show {quoted}`, and clears it with `mats trust {quoted} --clear-flags`"
        clear = f"{local}; in AWS, by trust in its owner"
        return cls(id=id, reasons=list(profile.withheld), clear=clear)


class RankedCapability(ResponseModel):
    """One result, best first."""

    id: str
    kind: Kind
    name: str
    namespace: str
    version: str = ""
    score: Rounded = Field(description="Weighted mean of the signals present, 0 to 1.", ge=0, le=1)
    signals: dict[Signal, Rounded] = Field(description="The measured signals, each 0 to 1.")
    weights: dict[Signal, Rounded] = Field(description="The weight of each signal; they sum to 1.")
    relevance: Rounded = Field(description="The `llm` signal, or the `retrieval` score if it is missing.", ge=0, le=1)
    summary: str = ""
    endpoint: str = ""
    provider: str = ""
    provider_verified: bool = Field(default=False, description=_VERIFIED)
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    enriched: bool = Field(
        description="True if an LLM wrote the profile, false if it is made from the registration alone."
    )
    suspicious: list[str] = Field(description="Reasons for caution; they do not change the score.")
    effects: list[str] = Field(default=[], description=_EFFECTS)
    unfit: str = Field(
        default="",
        description="Why it cannot be called with what the request `holds`; it is ranked behind equals. Empty if "
        "nothing is known against it.",
    )
    alternates: list[str] = Field(
        default=[],
        description="Ids of capabilities with nearly the same text that were left out for this one and others, at most "
        "ten; named once, by the best of their near-duplicates.",
    )
    why: Why | None = None

    @classmethod
    def of(cls, result: Result) -> Self:
        profile = result.candidate.profile
        why = {**result.why._asdict(), "used_for": result.candidate.used_for} if result.why else None
        return cls.from_values(profile.enrichment, profile, result, kind=profile.indexed_kind, why=why)


class PartResult(ResponseModel):
    """A result that serves a part; the rest of it is among the results."""

    id: str
    score: float
    relevance: float


class Part(ResponseModel):
    """One step of a request for several things."""

    text: str
    verdict: Verdict | None = Field(description="Null if this step could not be searched; see `degraded`.")
    results: list[PartResult] = Field(
        description="The results that serve this step rather than another, best first; each is among `results`."
    )


class Cost(ResponseModel):
    """The cost of the reranker's call; zero without a reply, though that may be billed.

    It excludes embedding the query, which costs less than a hundredth of it.
    """

    input_tokens: int
    output_tokens: int
    usd: float | None = Field(description="Null if the price of the model is unknown.")


class CalibrationVersion(ResponseModel):
    """The constants that map raw scores to `retrieval`, and without a reranker to a verdict."""

    name: str = Field(description="Index and encoder that the constants were fitted to.")
    fitted: bool = Field(
        description="False if the encoder of this answer has no constants of its own: compare its `retrieval` and its "
        "verdicts without a reranker with care."
    )


class Thresholds(ResponseModel):
    """The relevance from which a result counts as a match, or as a weak one, in this answer."""

    match: float
    weak: float


class Versions(ResponseModel):
    """The index, prompt and models behind this answer."""

    index: str
    prompt: str | None
    models: dict[str, str]
    calibration: CalibrationVersion | None = None


class Answer(ResponseModel):
    """A ranked shortlist."""

    query_id: str
    verdict: Verdict
    intent: str | None = Field(description="The capability type inferred from the query.")
    degraded: list[str] = Field(
        description="Parts that failed or were late: llm, neural, lexical, bm25, audiences, memory, receipt."
    )
    without: list[str] = Field(default=[], description="Parts that are not configured or switched off: llm, neural.")
    notes: list[str] = Field(
        default=[],
        description="What limits, narrows or widens this answer: an unread language, a misspelt word, a namespace. "
        "With the verdict `none`: the nearest, which are probably not it, and what to try.",
    )
    thresholds: Thresholds | None = Field(
        default=None, description="What the verdict compares the relevance of the best result with."
    )
    results: list[RankedCapability]
    parts: list[Part] | None = Field(
        default=None, description="The steps of a request that asked for parts, in its order; null for another one."
    )
    uncovered: list[str] = Field(default=[], description="The texts of the parts whose verdict is `none`.")
    excluded: list[Excluded] = Field(default=[], description="What `holds.leave_out` left out of the candidates.")
    withheld: list[Withheld] = Field(default=[], description="Results that an answer with a `format` leaves out.")
    took_ms: dict[str, _Milliseconds]
    cost: Cost
    versions: Versions

    @classmethod
    def of(cls, shortlist: Shortlist) -> Self:
        trace = shortlist.trace
        results = [RankedCapability.of(result) for result in shortlist.results]
        by_id = {each.id: PartResult(id=each.id, score=each.score, relevance=each.relevance) for each in results}
        parts = [
            Part(text=part.text, verdict=part.verdict, results=[by_id[id] for id in part.results])
            for part in shortlist.parts
        ]
        models = {"rerank": trace.reranker, "embed": trace.encoder}
        return cls.from_values(
            shortlist,
            trace,
            results=results,
            parts=parts or None,
            uncovered=[part.text for part in shortlist.parts if part.verdict is Verdict.NONE],
            excluded=[Excluded(id=id, because=because) for id, because in shortlist.excluded],
            withheld=[Withheld.of(profile) for profile in shortlist.withheld],
            cost=trace.usage,
            versions=Versions.from_values(trace, models={role: model for role, model in models.items() if model}),
        )


class RefusedModel(ResponseModel):
    """A model that refuses every request as it is configured."""

    role: str = Field(description="`writer` or `encoder`.")
    model: str
    cause: str


class HeldVersion(ResponseModel):
    """A later version that is not shown before operators have approved it."""

    since: str
    approved: str = Field(description="When the version that is shown was registered.")
    rejected: bool


class Capability(ResponseModel):
    """One capability's profile."""

    id: str
    kind: Kind
    name: str
    namespace: str
    version: str
    status: Status
    error: str = Field(description="The faults of the latest registration; the profile is that of the last valid one.")
    held: HeldVersion | None = Field(default=None, description="A later version that waits for operators' approval.")
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
    provider_verified: bool = Field(default=False, description=_VERIFIED)
    tags: list[str]
    type_tags: list[str]
    lifecycle: Lifecycle
    effects: list[str] = Field(default=[], description=_EFFECTS)
    trust: int | None
    suspicious: list[str] = Field(description="Reasons for caution.")
    notes: list[str]
    refused: list[RefusedModel] = Field(
        default=[], description="Models that the profile lacks; empty for callers who may not see internal errors."
    )
    rev: int

    @classmethod
    def of(cls, profile: Profile, *, internal_details: bool = False, **more: Any) -> Self:
        """The profile as a caller may see it; `more` are attributes of a subclass."""
        if profile.kind is None or profile.source is None:
            raise ValueError(f"{profile.id} is indexed without content")
        return cls.from_values(
            profile.enrichment,
            profile.source,
            profile,
            invocation=from_text(profile.invocation),
            input_schema=json.loads(profile.input_schema or "null"),
            refused=profile.refused if internal_details else (),
            **more,
        )


class Instructions(ResponseModel):
    """The instructions of a skill: text of its owner, not to be trusted."""

    id: str
    instructions: str = Field(description="Markdown; cut off after 64,000 bytes with a line that says so.")
    files: list[str] = Field(description="The files of the skill's folder, which its owner keeps.")
    suspicious: list[str] = Field(description="Reasons for caution.")

    @classmethod
    def of(cls, profile: Profile) -> Self:
        invocation = from_text(profile.invocation)
        files = list(invocation.files) if isinstance(invocation, SkillReading) else []
        return cls.from_values(profile, files=files)


class ListedCapability(ResponseModel):
    """One line of a list."""

    id: str
    kind: Kind
    summary: str
    trust: int | None
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    tags: list[str] = []
    suspicious: list[str] = Field(default=[], description="Reasons for caution.")

    @classmethod
    def of(cls, profile: Profile) -> Self:
        return cls.from_values(profile.enrichment, profile, kind=profile.indexed_kind)


class CapabilityPage(ResponseModel):
    """Capabilities in order of id."""

    capabilities: list[ListedCapability]
    following: str | None = Field(
        default=None, description="`after` of the next page, which may be empty; null: this is the last."
    )


class FieldFault(ResponseModel):
    """A fault of one field."""

    field: str
    message: str


class RejectedItem(ResponseModel):
    """An item of a batch that was not registered."""

    place: int = Field(ge=0, description="In the batch; the first is 0.")
    errors: list[FieldFault]


class RegisteredBatch(ResponseModel):
    """What became of a batch; safe to send again."""

    placed: dict[Id, Placed]
    rejected: list[RejectedItem]


class Problem(ResponseModel):
    """A problem document (RFC 9457, `application/problem+json`)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[FieldFault] = []


class Health(ResponseModel):
    """The state of the service."""

    status: str
    index: str
    encoder: str | None
    reranker: str | None
    weights: dict[Signal, float] = Field(default={}, description="The weight of each signal if all are present.")
    faults: list[str] = Field(
        default=[], description="For operators: why the last answers were degraded; empty once one was not."
    )
