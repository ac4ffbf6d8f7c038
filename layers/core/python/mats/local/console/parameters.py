"""Query strings, ids and preconditions of requests to the registry."""

import re
from typing import Annotated, TypeVar
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, Field, ValidationError

from mats.domain.capability.faults import faults_of
from mats.domain.errors import Fault, RequestInvalid
from mats.ports import Precondition

M = TypeVar("M", bound=BaseModel)

_STRAY_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_REPEATABLE = ("kind", "ns")


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
        raise RequestInvalid([Fault(name, "is given more than once: give it once") for name in sorted(repeated)])
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
