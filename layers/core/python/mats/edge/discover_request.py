"""The request of `POST /discover`: a query, and the format of the answer."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, ValidationInfo, field_validator

from mats.domain.errors import Fault, RequestInvalid
from mats.domain.ranking.query import Query


class Format(StrEnum):
    """The API whose tools a shortlist is answered as."""

    MCP_TOOLS = "mcp_tools"
    BEDROCK_TOOL_CONFIG = "bedrock_tool_config"
    CLAUDE_TOOL_REFERENCE = "claude_tool_reference"
    OPENAI_TOOLS = "openai_tools"


class DiscoverRequest(Query):
    """A request for capabilities: the body of `POST /discover`."""

    format: Format | None = Field(
        default=None,
        description="Answer with tools for a model instead of results. Also accepted in the query string.",
    )
    token_budget: Annotated[int, Field(ge=1, strict=True)] | None = Field(
        default=None,
        description="With a `format`: the maximum of tokens of all tools, estimated as one for every two bytes of "
        "JSON. Also accepted in the query string.",
    )

    @field_validator("token_budget")
    @classmethod
    def _requires_format(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and "format" in info.data and info.data["format"] is None:
            raise ValueError("needs a `format`: it limits ready-made tools")
        return value

    @classmethod
    def of(cls, body: Any, parameters: Mapping[str, Sequence[str]]) -> Self:
        """Parse a body together with a query string.

        Raises:
            RequestInvalid: with every fault of either.
        """
        from_query = _parse_parameters(parameters)
        if isinstance(body, dict):
            conflicts = sorted(name for name in from_query if name in body and body[name] != from_query[name])
            if conflicts:
                message = "differs between the body and the query string: give it in one of them"
                raise RequestInvalid([Fault(name, message) for name in conflicts])
            body = {**from_query, **body}
        return cls.parse(body)


def _parse_parameters(parameters: Mapping[str, Sequence[str]]) -> dict[str, str | int]:
    repeated = "is given more than once: give it once"
    unknown = "is not a query parameter; only `format` and `token_budget` are, anything else belongs in the body"
    faults = [
        Fault(name, repeated if name in _PARAMETERS else unknown)
        for name, values in sorted(parameters.items())
        if name not in _PARAMETERS or len(values) != 1
    ]
    if faults:
        raise RequestInvalid(faults)
    return {name: _number(values[0]) if name == "token_budget" else values[0] for name, values in parameters.items()}


def _number(text: str) -> str | int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


_PARAMETERS = ("format", "token_budget")
