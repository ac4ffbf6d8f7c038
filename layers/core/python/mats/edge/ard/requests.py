"""Requests of Agentic Resource Discovery: searches and lists."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from mats.domain.capability.faults import RequestModel
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.ranking.query import QueryText

_MAX_PAGE_SIZE = 100
_LIST_PARAMETERS = ("filter", "orderBy", "pageSize", "pageToken")

Value = Annotated[str, Field(min_length=1, max_length=1_000)]
Values = Annotated[
    list[Value],
    Field(min_length=1, max_length=50),
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class ArdQuery(RequestModel):
    """The text to search for, and a filter on entries."""

    context: Any = Field(default=None, alias="@context", description="Binds the prefixes that filter keys use.")
    text: QueryText
    filter: Annotated[dict[str, Values], Field(max_length=20)] = Field(
        default={}, description="An entry has one of the values of every key: `type`, `tags`, `publisher`."
    )


class ArdSearch(RequestModel):
    """The body of `POST /search`."""

    model_config = ConfigDict(alias_generator=to_camel)
    hints: ClassVar = {
        "limit": "is not a known attribute; did you mean `pageSize`?",
        "kinds": "is not a known attribute; did you mean `query.filter.type`?",
    }
    query: ArdQuery
    federation: Literal["auto", "referrals", "none"] = Field(
        default="auto", description="Has no effect on the search: no other registry is queried."
    )
    page_size: Annotated[int, Field(ge=1, le=_MAX_PAGE_SIZE, strict=True)] = 10
    page_token: str | None = None


@dataclass(frozen=True, slots=True)
class ArdListRequest:
    """The parameters of `GET /agents`."""

    filter: str = ""
    page_size: int = 20
    page_token: str | None = None

    @classmethod
    def parse(cls, parameters: Mapping[str, Sequence[str]]) -> Self:
        """Parse the query string; unknown parameters are ignored.

        Raises:
            RequestInvalid: a parameter is repeated, or its value is invalid.
        """
        known = {name: values for name, values in parameters.items() if name in _LIST_PARAMETERS}
        if repeated := [name for name, values in known.items() if len(values) > 1]:
            raise RequestInvalid([Fault(name, "is given more than once: give it once") for name in repeated])
        given = {name: values[0] for name, values in known.items() if values}
        if "orderBy" in given:
            raise RequestInvalid([Fault("orderBy", "is not supported: entries are always in order of id")])
        size = given.get("pageSize", "20")
        if not re.fullmatch(r"[0-9]{1,3}", size) or not 1 <= int(size) <= _MAX_PAGE_SIZE:
            raise RequestInvalid([Fault("pageSize", f"must be a whole number from 1 to {_MAX_PAGE_SIZE}")])
        return cls(given.get("filter", ""), int(size), given.get("pageToken") or None)
