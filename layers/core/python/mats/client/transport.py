"""HTTP calls with a timeout per attempt, retries with backoff, and validated responses.

The retries are not urllib3's, which cannot sign each attempt anew or bound the time until the end of the body.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from secrets import SystemRandom
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from urllib3 import HTTPResponse, PoolManager, Timeout
from urllib3.exceptions import HTTPError

from mats.client.auth import Auth
from mats.client.errors import Busy, MatsError, NotUnderstood, Unreachable, error_of
from mats.edge.schema import Problem

M = TypeVar("M", bound=BaseModel)

_MAX_BYTES = 8_000_000  # A shortlist with schemas of maximum size stays well below
_CHUNK = 65_536
_ERRORS = 300
_CONNECTIONS = 16
_MAX_QUOTED = 300  # Characters quoted of a response that is not understood


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Number of attempts, and exponential backoff from `base_s` with jitter between half and all of it.

    A longer Retry-After of the API replaces the backoff; beyond `longest_s` there is no retry.
    """

    attempts: int = 3
    base_s: float = 0.25
    longest_s: float = 10.0
    sleep: Callable[[float], object] = field(default=time.sleep, repr=False)
    random: Callable[[], float] = field(default=SystemRandom().random, repr=False)

    def pause_s(self, attempt: int, retry_after_s: float | None) -> float | None:
        """Seconds to wait after this attempt, the first being 1; none: no further attempt."""
        if attempt >= self.attempts or (retry_after_s or 0.0) > self.longest_s:
            return None
        backoff_s = min(self.base_s * 2.0 ** (attempt - 1), self.longest_s) * (0.5 + self.random() / 2)
        return max(retry_after_s or 0.0, backoff_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """Calls one API; safe to share between threads."""

    url: str
    auth: Auth | None
    timeout_s: float
    retries: Retries
    pool: PoolManager = field(default_factory=lambda: PoolManager(maxsize=_CONNECTIONS), repr=False)

    def call(self, method: str, path: str, model: type[M], body: Mapping[str, Any] | None = None) -> M:
        """The validated response of an idempotent request.

        Raises:
            MatsError: see mats.client.errors.
        """
        data = b"" if body is None else json.dumps(body).encode()
        for attempt in range(1, self.retries.attempts + 1):
            try:
                return self._attempt(method, path, model, data)
            except (Busy, Unreachable) as error:
                pause_s = self.retries.pause_s(attempt, error.retry_after_s if isinstance(error, Busy) else None)
                if pause_s is None:
                    raise
                self.retries.sleep(pause_s)
        raise MatsError("`attempts` must be at least 1")

    def _attempt(self, method: str, path: str, model: type[M], data: bytes) -> M:
        status, headers, content = self._send(method, path, data)
        if status in (200, 202):
            return _parse(model, content)
        raise error_of(_problem(status, content), _parse_retry_after(headers.get("Retry-After")))

    def _send(self, method: str, path: str, data: bytes) -> tuple[int, Mapping[str, str], bytes]:
        url = f"{self.url}{path}"
        headers: Mapping[str, str] = {
            "Accept": "application/json",
            **({"Content-Type": "application/json"} if data else {}),
        }
        if self.auth:
            headers = self.auth.headers(method, url, headers, data)
        deadline = time.monotonic() + self.timeout_s
        try:
            response = self.pool.request(
                method, url, body=data or None, headers=dict(headers), timeout=Timeout(total=self.timeout_s),
                retries=False, redirect=False, preload_content=False,
            )  # fmt: skip
            with response:
                body = _read_body(response, deadline)
                if response.status >= _ERRORS:  # which may repeat the request, with its token
                    body = body.replace(headers.get("Authorization", "").rpartition(" ")[2].encode() or b"\0", b"...")
                return response.status, response.headers, body
        except HTTPError as error:
            raise Unreachable(f"{self.url} does not answer ({type(error).__name__})") from error


def _read_body(response: Any, deadline: float) -> bytes:
    """Read a body, within its deadline and maximum size."""
    assert isinstance(response, HTTPResponse)  # noqa: S101 - the type a pool returns
    body = bytearray()
    while chunk := response.read1(_CHUNK):
        body += chunk
        if len(body) > _MAX_BYTES:
            raise NotUnderstood(f"the response has more than {_MAX_BYTES:,} bytes")
        if time.monotonic() > deadline:
            raise Unreachable("timeout while reading the response")
    return bytes(body)


def _parse(model: type[M], content: bytes) -> M:
    """Validate a response; unknown attributes of a newer API are ignored."""
    try:
        return model.model_validate_json(content, extra="ignore")
    except ValidationError as error:
        raise NotUnderstood(f"not a response of this API: {_quote(content)}") from error


def _problem(status: int, content: bytes) -> Problem:
    """The problem in a response; a proxy may have sent another body, which is quoted."""
    try:
        return Problem.model_validate_json(content, extra="ignore").model_copy(update={"status": status})
    except ValidationError:
        return Problem(title="Error", status=status, detail=_quote(content))


def _quote(content: bytes) -> str:
    text = "".join(c if c.isprintable() else " " for c in content[:_MAX_QUOTED].decode("utf-8", "replace"))
    return text or "nothing"


def _parse_retry_after(retry_after: str | None) -> float | None:
    """Seconds from now, of a number or a date; none if it is neither."""
    if not retry_after:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return None
