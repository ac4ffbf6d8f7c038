"""API Gateway's proxy events in, its responses out; the only place that knows HTTP statuses."""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel

from mats.domain.errors import (
    CapabilityError,
    CapabilityNotFound,
    DependencyFailed,
    Fault,
    Invalid,
    NotPermitted,
    RequestInvalid,
    StorageUnusable,
)
from mats.edge.answer import FaultAnswer, Problem

MAX_BODY_BYTES = 65_536
"""The longest query with every list full stays well below."""

Event = Mapping[str, Any]

_SESSION = re.compile(r"arn:(?P<partition>[\w-]+):sts::(?P<account>\d+):assumed-role/(?P<role>[^/]+)/.*")

_TITLES = {
    400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 409: "Conflict",
    412: "Precondition Failed", 413: "Content Too Large", 415: "Unsupported Media Type",
    422: "Unprocessable Content", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Response:
    """What goes back."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def to_proxy(self) -> dict[str, Any]:
        """As API Gateway expects it."""
        return {
            "statusCode": self.status, "headers": dict(self.headers), "body": self.body, "isBase64Encoded": False,
        }  # fmt: skip


class BodyUnreadable(RequestInvalid):
    """The body is not JSON at all."""


class BodyTooLarge(RequestInvalid):
    """The body is longer than any request needs."""


def body_of(event: Event) -> Any:
    """The JSON of a request's body.

    Raises:
        BodyTooLarge: more than MAX_BODY_BYTES.
        BodyUnreadable: not UTF-8, not JSON, or nested beyond reading.
    """
    try:
        raw = event.get("body") or ""
        data = base64.b64decode(raw, validate=True) if event.get("isBase64Encoded") else raw.encode()
    except ValueError as error:  # half a character, base64 that is none
        raise BodyUnreadable([Fault("", "the body is not UTF-8 text")]) from error
    return json_of(data)


def json_of(data: bytes, most: int = MAX_BODY_BYTES) -> Any:
    """The JSON of at most so many bytes. Raises as `body_of` does."""
    if len(data) > most:
        raise BodyTooLarge([Fault("", f"the body is {len(data):,} bytes; at most {most:,} are read")])
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeError as error:
        raise BodyUnreadable([Fault("", "the body is not UTF-8 text")]) from error
    except json.JSONDecodeError as error:
        raise BodyUnreadable([Fault("", f"the body is not JSON: {error.msg} at character {error.pos}")]) from error
    except ValueError as error:  # a number too long to read
        raise BodyUnreadable([Fault("", f"the body cannot be read: {error}")]) from error
    except RecursionError as error:
        raise BodyUnreadable([Fault("", "the body is nested too deeply")]) from error


def path_of(event: Event) -> str:
    """The path as the client meant it, percent-encoding undone."""
    return unquote(str(event.get("path") or "/"))


def parameters_of(event: Event) -> dict[str, list[str]]:
    """The parameters of the query string, each with every value given to it."""
    return {name: list(values) for name, values in (event.get("multiValueQueryStringParameters") or {}).items()}


def header_of(event: Event, name: str) -> str | None:
    """A header's value, however the client spells its name; None if it is not there."""
    headers = event.get("headers") or {}
    return next((str(value) for key, value in headers.items() if key.lower() == name.lower()), None)


def audiences_of(event: Event) -> frozenset[str]:
    """The audiences the authorizer vouches for; nothing a client can send ends up here."""
    authorizer = (event.get("requestContext") or {}).get("authorizer") or {}
    return frozenset(part.strip() for part in str(authorizer.get("audiences") or "").split(",") if part.strip())


def caller_of(event: Event) -> str | None:
    """The ARN of the role or user that signed the request, without the name of its session; None if nobody did.

    API Gateway gives the session's ARN, in which the path of a role is missing: operators leave it out, too.
    """
    identity = (event.get("requestContext") or {}).get("identity") or {}
    arn = str(identity.get("userArn") or "")
    session = _SESSION.fullmatch(arn)
    return f"arn:{session['partition']}:iam::{session['account']}:role/{session['role']}" if session else arn or None


def ok(answer: BaseModel) -> Response:
    """The answer as JSON."""
    return Response(200, answer.model_dump_json(exclude_none=False), {"Content-Type": "application/json"})


def failed(error: CapabilityError, *, discreet: bool = False) -> Response:
    """The problem an error of ours is.

    Args:
        error: What went wrong.
        discreet: Callers are not the operator: what failed inside, and where, is for the log.
    """
    status = _status(error)
    if discreet and isinstance(error, DependencyFailed):
        return problem(status, "discovery cannot answer now; try again", headers={"Retry-After": "1"})
    faults = error.faults if isinstance(error, Invalid) else ()
    headers = {"Retry-After": "1"} if status == 503 and not isinstance(error, NotPermitted | StorageUnusable) else {}
    return problem(status, str(error), faults, headers)


def problem(
    status: int, detail: str, faults: tuple[Fault, ...] = (), headers: Mapping[str, str] | None = None
) -> Response:
    """A problem in the one shape they all have."""
    answer = Problem(
        title=_TITLES.get(status, "Error"),
        status=status,
        detail=_sayable(detail),
        errors=[FaultAnswer(field=_sayable(f.attribute), message=_sayable(f.message)) for f in faults if f.attribute],
    )
    return Response(status, answer.model_dump_json(), {"Content-Type": "application/problem+json", **(headers or {})})


def _sayable(text: str) -> str:
    """The text without halves of characters, which a body may hold in a name and no answer can repeat."""
    return text.encode(errors="replace").decode()


def _status(error: CapabilityError) -> int:
    match error:
        case BodyTooLarge():
            return 413
        case BodyUnreadable():
            return 400
        case Invalid():
            return 422
        case CapabilityNotFound():
            return 404
        case DependencyFailed():
            return 503
        case _:
            return 500
