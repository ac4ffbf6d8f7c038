"""Query strings, ids and preconditions of requests to the registry."""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, TypeVar
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, Field, ValidationError

from mats.domain.capability import Kind, Lifecycle
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.faults import faults_of
from mats.local.console.list_row import ListRow
from mats.ports import Precondition

M = TypeVar("M", bound=BaseModel)

_STRAY_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_REPEATABLE = ("kind",)
_MAX_LENGTH = 2_000


class Show(StrEnum):
    """The named filters of the list."""

    ALL = "all"
    SPARSE = "sparse"
    REJECTED = "rejected"
    SUSPICIOUS = "suspicious"
    DEPRECATED = "deprecated"
    UNENRICHED = "unenriched"
    UNCALLABLE = "uncallable"


FILTERS: dict[Show, Callable[[ListRow], bool]] = {
    Show.ALL: lambda row: True,
    Show.SPARSE: lambda row: bool(row.sparse),
    Show.REJECTED: lambda row: bool(row.error),
    Show.SUSPICIOUS: lambda row: bool(row.suspicious),
    Show.DEPRECATED: lambda row: row.lifecycle == Lifecycle.DEPRECATED,
    Show.UNENRICHED: lambda row: not row.enriched,
    Show.UNCALLABLE: lambda row: not row.callable,
}


class ListQuery(BaseModel, frozen=True, extra="forbid"):
    """The parameters of a page of the list: its filters, its start and its length."""

    show: Show = Show.ALL
    kind: tuple[Kind, ...] = ()
    q: Annotated[str, Field(max_length=_MAX_LENGTH)] = ""
    after: Annotated[str, Field(max_length=_MAX_LENGTH)] = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50

    def select(self, rows: Sequence[ListRow]) -> Sequence[ListRow]:
        """The rows that match, in their order."""
        text = self.q.casefold()
        if self.show is not Show.ALL:
            rows = list(filter(FILTERS[self.show], rows))
        if self.kind:
            rows = [row for row in rows if row.kind in self.kind]
        return [row for row in rows if text in row.search_text] if text else rows


class DemandQuery(BaseModel, frozen=True, extra="forbid"):
    """The parameters of demand."""

    days: Annotated[int, Field(ge=1, le=3650)] = 30


class NoParameters(BaseModel, extra="forbid"):
    """Every parameter is a fault."""


def parse_query(query: bytes, model: type[M]) -> M:
    """The parameters of a query string.

    Strict where Starlette's own parser is lenient: invalid encodings and repeated parameters are faults.
    """
    values: dict[str, list[str]] = {}
    for pair in filter(None, query.split(b"&")):
        name, _, value = pair.replace(b"+", b" ").partition(b"=")
        key = percent_decode(name, "")
        values.setdefault(key, []).append(percent_decode(value, key))
    if repeated := [name for name, texts in values.items() if len(texts) > 1 and name not in _REPEATABLE]:
        raise RequestInvalid([Fault(name, "is given more than once") for name in sorted(repeated)])
    try:
        return model.model_validate(
            {name: texts if name in _REPEATABLE else texts[0] for name, texts in values.items()}
        )
    except ValidationError as error:
        raise RequestInvalid(faults_of(error, model, {})) from error


def percent_decode(text: bytes, field: str) -> str:
    """Decode percent-encoded UTF-8; a fault names the field."""
    try:
        if _STRAY_PERCENT.search(text):
            raise ValueError
        return unquote_to_bytes(text).decode()
    except ValueError as error:
        raise RequestInvalid([Fault(field, "is not percent-encoded UTF-8; write a % itself as %25")]) from error


def precondition(if_match: str | None, if_none_match: str | None) -> Precondition:
    """The precondition of `If-Match` and `If-None-Match` (RFC 9110, 13.1); None where a header is absent."""
    expected, excluded = _etags(if_match), _etags(if_none_match)

    def holds(etag: str | None) -> bool:
        if if_match is not None and (etag is None or not expected & {"*", etag}):
            return False
        return if_none_match is None or etag is None or not excluded & {"*", etag}

    return holds


def _etags(header: str | None) -> set[str]:
    """The ETags of a header, without quotes; weak ones never match ours, which are strong."""
    parts = [part.strip() for part in (header or "").split(",")]
    return {part.strip('"') for part in parts if part and not part.startswith("W/")}
