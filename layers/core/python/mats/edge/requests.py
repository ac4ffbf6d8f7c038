"""Requests of the API: query strings, and the bodies of searches."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self, get_origin

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator

from mats.domain.capability.capability import Kind
from mats.domain.capability.faults import RequestModel
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.ranking.query import Filter, Label, Query

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

    unknown = "is not a query parameter; only `format` and `token_budget` are, anything else belongs in the body"
    format: Format | None = Field(default=None, description="As in the body.")
    token_budget: Annotated[int, Field(ge=1), WHOLE] | None = Field(default=None, description="As in the body.")


class DiscoverRequest(Query):
    """A request for capabilities: the body of `POST /discover`."""

    format: Format | None = Field(
        default=None, description="Answer with tools for a model instead of results. Also accepted in the query string."
    )
    token_budget: Annotated[int, Field(ge=1, strict=True)] | None = Field(
        default=None,
        description="With a `format`: the maximum of tokens of all tools, as estimated. Also accepted in the query "
        "string.",
    )
    known: Annotated[tuple[Label, ...], Field(max_length=1_000)] | None = Field(
        default=None,
        description="With a `format`: names (or ids) of tools that the caller has. Only others are defined, in order "
        "of name, so that a session can append them; begin it with an empty list.",
    )

    @field_validator("token_budget", "known")
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
        given = parameters.model_dump(exclude_unset=True)
        if isinstance(body, dict):
            message = "differs between the body and the query string: give it in one of them"
            conflicts = [Fault(name, message) for name in sorted(given) if name in body and body[name] != given[name]]
            if conflicts:
                raise RequestInvalid(conflicts)
            body = {**given, **body}
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
