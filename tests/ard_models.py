"""The answers of Agentic Resource Discovery v0.91 as its published OpenAPI and entry schema have them.

Written from the specification and not from our code. An entry is open: terms that are not named here are allowed.
"""

# ruff: noqa: N815 - named as the specification names them

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AnyUrl, BaseModel, ConfigDict, Field, StrictInt, StrictStr, model_validator

IDENTIFIER = r"^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$"
PROBED = r"^urn:air:([a-zA-Z0-9.-]+)(?::([a-zA-Z0-9._:-]+))?:([a-zA-Z0-9._-]+)$"
"""The identifier that the conformance tool accepts, a little stricter."""

Scalar = StrictStr | StrictInt | float | bool | None


class EntryFields(BaseModel):
    """The terms an entry may carry; none is required."""

    model_config = ConfigDict(extra="allow")

    identifier: Annotated[StrictStr, Field(pattern=IDENTIFIER)] = "urn:air:left.out:x"
    displayName: StrictStr = "left out"
    type: StrictStr = "left/out"
    url: AnyUrl | None = None
    data: dict[str, Any] | None = None
    representativeQueries: list[StrictStr] = []
    capabilities: list[StrictStr] = []
    description: StrictStr = ""
    tags: list[StrictStr] = []
    version: StrictStr = ""
    updatedAt: datetime | None = None
    metadata: dict[str, Scalar] = {}
    trustManifest: dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _says_nothing_with_null(cls, value: Any) -> Any:
        assert all(said is not None for said in value.values())
        return value


class Entry(EntryFields):
    """A complete entry."""

    @model_validator(mode="after")
    def _complete(self) -> "Entry":
        assert self.model_fields_set >= {"identifier", "displayName", "type"}
        assert len(self.model_fields_set & {"url", "data"}) == 1
        assert not {"score", "source"} & (self.model_extra or {}).keys()
        assert self.displayName
        assert len(self.representativeQueries) <= 5
        return self


class SearchResult(EntryFields):
    """An entry as a search found it."""

    identifier: Annotated[StrictStr, Field(pattern=IDENTIFIER)]
    score: Annotated[StrictInt, Field(ge=0, le=100)]
    source: AnyUrl


class Referral(BaseModel):
    """Another registry."""

    identifier: StrictStr
    displayName: StrictStr
    type: Literal["application/ai-registry", "application/ai-registry+json"]
    url: AnyUrl


class SearchResponse(BaseModel):
    """The answer of `POST /search`, and nothing else."""

    model_config = ConfigDict(extra="forbid")

    results: list[SearchResult]
    referrals: list[Referral] = []
    pageToken: StrictStr = ""


class ListedEntry(EntryFields):
    """An entry in a list."""

    identifier: Annotated[StrictStr, Field(pattern=IDENTIFIER)]


class ListResponse(BaseModel):
    """The answer of `GET /agents`."""

    items: list[ListedEntry]
    total: StrictInt | None = None
    pageToken: StrictStr = ""


class Manifest(BaseModel):
    """The document at `/.well-known/ard.json`."""

    entries: list[Entry]


class Error(BaseModel):
    """An error."""

    model_config = ConfigDict(extra="forbid")

    errorCode: Annotated[StrictStr, Field(pattern=r"^[A-Z_]+$")]
    message: Annotated[StrictStr, Field(min_length=1)]


CODES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RATE_LIMIT_EXCEEDED",
    500: "INTERNAL_ERROR",
}  # fmt: skip
"""The codes that the specification has."""
