"""Requests and responses, whoever carries them; the only place that knows HTTP statuses."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel

from mats.domain import errors
from mats.domain.text.fence import spell_out
from mats.edge.schema import FieldFault, Problem
from mats.settings import Settings

LOCAL = "local"  # The name of the user of this machine, in receipts


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller as its credentials identify it; parsed once, at the edge."""

    audiences: frozenset[str] = frozenset()
    arn: str = ""  # The role or user that signed, which operators map to audiences; empty if nobody signed
    sees_internal_errors: bool = False
    request_id: str = ""  # For logs; empty where nothing gives it one
    subject: str = ""  # Of its token; empty without one

    @property
    def name(self) -> str:
        """Identifies the caller in receipts; `local` on this machine."""
        return self.arn or self.subject or LOCAL


def local_caller(settings: Settings) -> Caller:
    """The user of this machine, who is its operator, too."""
    return Caller(frozenset(settings.audiences), sees_internal_errors=True)


MAX_BODY_BYTES = 65_536  # The longest query with every list full stays well below

_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""As in RFC 9110; `http.HTTPStatus` has older phrases for these before Python 3.13."""
_FOR_OPERATORS = (errors.NotInstalled, errors.NotPermitted, errors.StorageUnusable)  # A retry alone does not help
_UNAVAILABLE = "discovery cannot answer now; try again"
_NO_TEXT = "the body is not UTF-8 text: send JSON in UTF-8"


class BodyUnreadable(errors.RequestInvalid):
    """The body is not JSON."""


class BodyTooLarge(errors.RequestInvalid):
    """The body exceeds its limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str = "/"  # Percent-encoded as it was sent
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = b""  # None if its transport encoding is broken
    caller: Caller = field(default_factory=Caller)
    domain: str = ""  # The host under which API Gateway serves; empty elsewhere
    prefix: str = ""  # The path prefix under which API Gateway serves; empty elsewhere

    @property
    def decoded_path(self) -> str:
        return unquote(self.path)

    def header(self, name: str) -> str | None:
        """The value of a header; names are case-insensitive."""
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), None)

    def json(self) -> Any:
        """The JSON of the body.

        Raises BodyTooLarge: more than MAX_BODY_BYTES; BodyUnreadable: not UTF-8, not JSON, or nested too deeply.
        """
        if self.body is None:
            raise BodyUnreadable([errors.Fault("", _NO_TEXT)])
        return parse_json(self.body)


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


def parse_json(data: bytes, limit: int = MAX_BODY_BYTES) -> Any:
    """The JSON of at most `limit` bytes. Raises as `Request.json` does."""
    if len(data) > limit:
        message = f"the body is too long: send at most {limit:,} bytes"
        raise BodyTooLarge([errors.Fault("", message)])
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeError:
        message = _NO_TEXT
    except json.JSONDecodeError as error:
        message = f"the body is not JSON: {error.msg} at character {error.pos}; send one JSON value"
    except ValueError:
        message = "the body has a number too long to read: shorten it"
    except RecursionError:
        message = "the body is nested too deeply: nest it less"
    raise BodyUnreadable([errors.Fault("", message)])


def json_response(content: BaseModel, status: int = 200) -> Response:
    return Response(status, to_json(content), {"Content-Type": "application/json"})


def to_json(content: BaseModel, **options: Any) -> str:
    """A model as JSON, with hidden characters spelled out: docs/decisions/0038."""
    return spell_out(content.model_dump_json(**options))


def error_response(error: errors.CapabilityError, *, internal_details: bool = True) -> Response:
    """The problem document of an error; without internal details, the text says only that discovery is unavailable."""
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 500)
    if _is_internal(error) and not internal_details:
        return problem(status, _UNAVAILABLE, headers={"Retry-After": "1"})
    faults = error.faults if isinstance(error, errors.Invalid) else ()
    after = error.retry_after_s if isinstance(error, errors.Overloaded) else 1
    headers = {"Retry-After": f"{after}"} if status in (429, 503) and not isinstance(error, _FOR_OPERATORS) else {}
    return problem(status, str(error), faults, headers)


def error_detail(error: errors.DependencyFailed, caller: Caller) -> str:
    """The text of an error for this caller, where there is no HTTP status to go with it."""
    return _UNAVAILABLE if _is_internal(error) and not caller.sees_internal_errors else str(error)


def _is_internal(error: errors.CapabilityError) -> bool:
    """True if the text is for operators; that too many ask at once is for callers, who can ask later."""
    return isinstance(error, errors.DependencyFailed) and not isinstance(error, errors.Overloaded)


def problem(
    status: int, detail: str, faults: tuple[errors.Fault, ...] = (), headers: Mapping[str, str] | None = None
) -> Response:
    """A problem document (RFC 9457)."""
    document = Problem(
        title=_TITLES.get(status) or HTTPStatus(status).phrase,
        status=status,
        detail=_valid_text(detail),
        errors=[
            FieldFault(field=_valid_text(f.attribute), message=_valid_text(f.message)) for f in faults if f.attribute
        ],
    )
    return Response(status, to_json(document), {"Content-Type": "application/problem+json", **(headers or {})})


def _valid_text(text: str) -> str:
    """The text with `?` for lone surrogates, which JSON can carry and UTF-8 cannot."""
    return text.encode(errors="replace").decode()


_STATUS: Mapping[type[errors.CapabilityError], int] = {
    BodyTooLarge: 413,
    BodyUnreadable: 400,
    errors.Overloaded: 429,
    errors.KindConflict: 409,
    errors.NotPossible: 409,
    errors.Invalid: 422,
    errors.PreconditionFailed: 412,
    errors.CapabilityNotFound: 404,
    errors.ReceiptNotFound: 404,
    errors.DependencyFailed: 503,
}
"""By class; a subclass stands before its base."""
