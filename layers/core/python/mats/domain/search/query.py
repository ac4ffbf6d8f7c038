"""Queries, and the filters that decide which capabilities may answer."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from mats.domain.capability.capability import Kind
from mats.domain.capability.faults import RequestModel
from mats.domain.profile.profile import Profile
from mats.domain.protocols.descriptors import Effect, effect_tag
from mats.domain.text.words import clip


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


MOST = 7  # Steps of a request
LONGEST = 2_000  # Characters of a request
QueryText = Annotated[str, Field(min_length=1, max_length=LONGEST), AfterValidator(_check_not_blank)]


def _check_relevance(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return value
    if value is None or value == "weak":
        return value
    raise ValueError(f"must be a number from 0 to 1, or `weak`; not {str(value)[:60]!r}")


Relevance = Annotated[Annotated[float, Field(ge=0, le=1)] | Literal["weak"], BeforeValidator(_check_relevance)]
Label = Annotated[str, Field(min_length=1, max_length=200)]


def _distinct(value: object) -> object:
    return list(dict.fromkeys(value)) if isinstance(value, list) and all(isinstance(v, str) for v in value) else value


_Transport = Literal["mcp", "stdio", "streamable-http", "sse", "http", "a2a", "skill", "bedrock"]


class Holds(RequestModel):
    """What a caller can call with. What is left out of it is not looked at."""

    auth: Annotated[tuple[Label, ...], Field(max_length=50)] | None = Field(
        default=None,
        description="The authentication schemes that it has credentials for, as `invocation.auth` names them: "
        "`bearer`, `apiKey`. `bearer@com.acme` is for this namespace and those below. Empty: none.",
    )
    transports: tuple[_Transport, ...] | None = Field(
        default=None, description="The protocols and MCP transports that it speaks."
    )
    read_only: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="Only what its owner says to be read-only."
    )
    leave_out: Annotated[bool, Field(strict=True)] = Field(
        default=False,
        description="Leave out what cannot be called now, into `excluded`, instead of ranking it behind equals.",
    )


class Query(RequestModel):
    """A request for capabilities: the body of `POST /discover`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["query"], "properties": {"query": {"type": "string"}}},
                {"required": ["queries"], "properties": {"queries": {"type": "array"}}},
            ]
        }
    )
    hints: ClassVar = {
        "k": "is not a known attribute; did you mean `limit`?",
        "text": "is not a known attribute; did you mean `query`?",
    }
    queries: Annotated[tuple[QueryText, ...], Field(min_length=2, max_length=MOST)] | None = Field(
        default=None,
        description="In place of `query`, the steps of a request for several things, one each: the answer has `parts`.",
    )
    query: QueryText | None = Field(
        default=None,
        validate_default=True,
        description="What is wanted, in plain words; required unless there are `queries`.",
        examples=["refund a customer's card payment"],
    )
    kinds: Annotated[tuple[Kind, ...], BeforeValidator(_distinct)] = Field(
        default=(), description="Any of these kinds; empty: all four."
    )
    namespaces: Annotated[tuple[Label, ...], Field(max_length=50)] = Field(
        default=(), description="In any of these namespaces or below: `com.acme` includes `com.acme.pay`."
    )
    tags: Annotated[tuple[Label, ...], Field(max_length=50)] = Field(
        default=(), description="Carrying every one of these tags."
    )
    effects: Annotated[tuple[Effect, ...], BeforeValidator(_distinct)] = Field(
        default=(), description="Whose owner says any of these of its effects; empty: all."
    )
    holds: Holds | None = Field(
        default=None,
        description="What the caller can call with: what needs more is ranked behind what is as good a match.",
    )
    limit: Annotated[int, Field(ge=1, strict=True)] | None = Field(
        default=None,
        description="At most this many results; no more than the service looks at (15 by default). Default: "
        "all; with a `format`: 5.",
    )
    min_relevance: Relevance | None = Field(
        default=None,
        description="Only results of at least this relevance, 0 to 1; `weak`: that of a verdict `weak`, at least 6 % "
        "of the best; with the verdict `none` the nearest three. Default: all; with a `format`: `weak`. With a "
        "`format`, the verdict `none` has no tools at any value; `notes` name the nearest.",
    )
    explain: Annotated[bool, Field(strict=True)] = Field(
        default=False, description="Say for each result which words matched in which fields."
    )

    @field_validator("query")
    @classmethod
    def _requires_one(cls, value: str | None, info: ValidationInfo) -> str | None:
        queries = info.data.get("queries", ())  # absent if they are faulty themselves
        if value is None and queries is None:
            raise ValueError("is required")
        if value is not None and queries:
            raise ValueError("excludes `queries`: send one of them")
        return value

    @property
    def text(self) -> str:
        """The whole request: the query, or a line for each of the queries, all of them shortened to its length."""
        if self.query is not None:
            return self.query
        steps = self.queries or ()
        return "\n".join(clip(step, LONGEST // max(1, len(steps)) - 1) for step in steps)

    @property
    def texts(self) -> tuple[str, ...]:
        """The whole request, followed by its steps if it has several."""
        return (self.text, *(self.queries or ()))


@dataclass(frozen=True, slots=True)
class Scope:
    """Filters of other protocols that a `Query` cannot express."""

    exact_namespaces: frozenset[str] = frozenset()  # Admits these namespaces without those below them; empty admits all
    tag_choices: frozenset[frozenset[str]] = frozenset()  # Of each of these sets, at least one tag must be present
    keys: frozenset[str] = frozenset()
    """Admits what has any of these keys of an index (`domain/profile/index_keys`); empty admits all."""
    without_keys: frozenset[str] = frozenset()  # Admits nothing that has any of these


ANYWHERE = Scope()


@dataclass(frozen=True, slots=True)
class Filter:
    """Which capabilities may answer: those that match the query's filters and are visible to the caller."""

    kinds: frozenset[Kind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    audiences: frozenset[str] = frozenset()
    scope: Scope = ANYWHERE

    @classmethod
    def of(cls, query: Query, audiences: Collection[str], scope: Scope = ANYWHERE) -> Self:
        """The filter of a query by a caller in these audiences."""
        wanted = frozenset(query.kinds), frozenset(query.namespaces), frozenset(query.tags)
        if query.effects:
            effects = frozenset(map(effect_tag, query.effects))
            scope = replace(scope, tag_choices=scope.tag_choices | {effects})
        return cls(*wanted, frozenset(audiences), scope)

    @property
    def visible(self) -> "Filter":
        """The filter of everything that the caller sees."""
        return Filter(audiences=self.audiences)

    def admits_kind(self, kind: Kind | None) -> bool:
        """Empty admits all."""
        return not self.kinds or kind in self.kinds

    def admits_namespace(self, namespace: str) -> bool:
        """A namespace admits itself and everything below it, at a dot; an exact one admits itself alone."""
        if self.scope.exact_namespaces and namespace not in self.scope.exact_namespaces:
            return False
        return not self.namespaces or any(f"{namespace}.".startswith(f"{wanted}.") for wanted in self.namespaces)

    def admits_tags(self, tags: Collection[str]) -> bool:
        """Every tag of the filter must be present, and at least one of each choice."""
        return self.tags.issubset(tags) and not any(choice.isdisjoint(tags) for choice in self.scope.tag_choices)

    def admits(self, profile: Profile) -> bool:
        """True if it passes the filter, whoever has found it; keys of the scope are left to the index."""
        return (
            self.sees(profile.visible_to)
            and self.admits_kind(profile.kind)
            and self.admits_namespace(profile.namespace)
            and self.admits_tags(profile.filtered_tags)
        )

    def sees(self, visible_to: Collection[str] | None) -> bool:
        """True if a capability is visible to this caller: to everyone, or to one of the caller's audiences."""
        return visible_to is None or not self.audiences.isdisjoint(visible_to)
