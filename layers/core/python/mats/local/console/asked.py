"""What a request's query string asks the registry for."""

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated, TypeVar
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mats.domain.capability import Kind
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.faults import faults_of
from mats.local.console.rows import Row

M = TypeVar("M", bound=BaseModel)

_STRAY = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_SEVERAL = ("kind",)
_LONGEST = 2_000


class Show(StrEnum):
    """Which capabilities."""

    ALL = "all"
    SPARSE = "sparse"
    REJECTED = "rejected"
    SUSPICIOUS = "suspicious"
    DEPRECATED = "deprecated"
    UNENRICHED = "unenriched"


SHOWS: dict[Show, Callable[[Row], bool]] = {
    Show.ALL: lambda row: True,
    Show.SPARSE: lambda row: bool(row.sparse),
    Show.REJECTED: lambda row: bool(row.error),
    Show.SUSPICIOUS: lambda row: bool(row.suspicious),
    Show.DEPRECATED: lambda row: row.deprecated,
    Show.UNENRICHED: lambda row: not row.enriched,
}


class Wanted(BaseModel):
    """A page of a list."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    show: Show = Show.ALL
    kind: tuple[Kind, ...] = ()
    q: Annotated[str, Field(max_length=_LONGEST)] = ""
    after: Annotated[str, Field(max_length=_LONGEST)] = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50

    def of(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Those of these rows that are wanted."""
        sought = self.q.casefold()
        if self.show is not Show.ALL:
            rows = list(filter(SHOWS[self.show], rows))
        if self.kind:
            rows = [row for row in rows if row.kind in self.kind]
        return [row for row in rows if sought in row.sought] if sought else rows


class Nothing(BaseModel):
    """Where there is nothing to choose."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def wanted(query: bytes) -> Wanted:
    """The page that a query string asks for.

    Raises:
        RequestInvalid: with every fault.
    """
    return _parsed(query, Wanted)


def nothing(query: bytes) -> None:
    """See to it that nothing is asked for.

    Raises:
        RequestInvalid: something is.
    """
    _parsed(query, Nothing)


def _parsed(query: bytes, model: type[M]) -> M:
    given: dict[str, list[str]] = {}
    for pair in filter(None, query.split(b"&")):
        name, _, value = pair.replace(b"+", b" ").partition(b"=")
        key = decoded(name, "")
        given.setdefault(key, []).append(decoded(value, key))
    if twice := [name for name, values in given.items() if len(values) > 1 and name not in _SEVERAL]:
        raise RequestInvalid([Fault(name, "is given more than once") for name in sorted(twice)])
    try:
        return model.model_validate({name: values if name in _SEVERAL else values[0] for name, values in given.items()})
    except ValidationError as error:
        raise RequestInvalid(faults_of(error, model, {})) from error


def decoded(text: bytes, what: str) -> str:
    """A part of an address, percent-encoding undone.

    Raises:
        RequestInvalid: it is not percent-encoded UTF-8; `what` names the part.
    """
    try:
        if _STRAY.search(text):
            raise ValueError
        return unquote_to_bytes(text).decode()
    except ValueError as error:
        raise RequestInvalid([Fault(what, "is not percent-encoded UTF-8; a % itself is written %25")]) from error
