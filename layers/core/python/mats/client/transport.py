"""One question over HTTP: within its time, tried again where that may help, and read as what the API promises."""

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
from mats.client.errors import Busy, MatsError, NotUnderstood, Unreachable, refused
from mats.edge.answer import Problem

M = TypeVar("M", bound=BaseModel)

_LONGEST_ANSWER = 8_000_000
"""Bytes; a shortlist with every schema at its largest stays well below."""
_CHUNK = 65_536
_CONNECTIONS = 16
_SAID = 300
"""Characters of an answer that is quoted because nobody understands it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often and when to try again: after `base_s`, twice that and so on, each time between half and all of it.

    The API's own Retry-After goes before, if it is not longer than `longest_s`: then nobody waits, and the error says
    when to come back.
    """

    attempts: int = 3
    base_s: float = 0.25
    longest_s: float = 10.0
    sleep: Callable[[float], object] = field(default=time.sleep, repr=False)
    random: Callable[[], float] = field(default=SystemRandom().random, repr=False)

    def pause_s(self, attempt: int, asked_s: float | None) -> float | None:
        """How long to wait after this attempt, the first being 1; None if there is not to be another."""
        if attempt >= self.attempts or (asked_s or 0.0) > self.longest_s:
            return None
        drawn = min(self.base_s * 2.0 ** (attempt - 1), self.longest_s) * (0.5 + self.random() / 2)
        return max(asked_s or 0.0, drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """Asks one API, from any number of threads."""

    url: str
    auth: Auth | None
    timeout_s: float
    retries: Retries
    pool: PoolManager = field(default_factory=lambda: PoolManager(maxsize=_CONNECTIONS), repr=False)

    def ask(self, method: str, path: str, wanted: type[M], body: Mapping[str, Any] | None = None) -> M:
        """The answer to a question that changes nothing, so that it can be asked again.

        Raises:
            MatsError: as its tree says.
        """
        data = b"" if body is None else json.dumps(body).encode()
        for attempt in range(1, self.retries.attempts + 1):
            try:
                return self._once(method, path, wanted, data)
            except (Busy, Unreachable) as error:
                pause_s = self.retries.pause_s(attempt, error.retry_after_s if isinstance(error, Busy) else None)
                if pause_s is None:
                    raise
                self.retries.sleep(pause_s)
        raise MatsError("there were no attempts to be made")

    def _once(self, method: str, path: str, wanted: type[M], data: bytes) -> M:
        status, headers, content = self._sent(method, path, data)
        if status == 200:
            return _read(wanted, content)
        raise refused(_problem(status, content), _seconds(headers.get("Retry-After")))

    def _sent(self, method: str, path: str, data: bytes) -> tuple[int, Mapping[str, str], bytes]:
        url = f"{self.url}{path}"
        headers: Mapping[str, str] = {
            "Accept": "application/json",
            **({"Content-Type": "application/json"} if data else {}),
        }
        if self.auth:
            headers = self.auth.headers(method, url, headers, data)
        until = time.monotonic() + self.timeout_s
        try:
            response = self.pool.request(
                method, url, body=data or None, headers=dict(headers), timeout=Timeout(total=self.timeout_s),
                retries=False, redirect=False, preload_content=False,
            )  # fmt: skip
            with response:
                return response.status, response.headers, _content(response, until)
        except HTTPError as error:
            raise Unreachable(f"{self.url} does not answer ({type(error).__name__})") from error


def _content(response: Any, until: float) -> bytes:
    """All of a body, however slowly it comes, but not later than that and not without end.

    Raises:
        Unreachable: time is over.
        NotUnderstood: it is longer than any answer.
    """
    assert isinstance(response, HTTPResponse)  # noqa: S101 - what a pool gives
    read = bytearray()
    while chunk := response.read1(_CHUNK):
        read += chunk
        if len(read) > _LONGEST_ANSWER:
            raise NotUnderstood(f"an answer of more than {_LONGEST_ANSWER:,} bytes")
        if time.monotonic() > until:
            raise Unreachable("the answer did not come to its end in time")
    return bytes(read)


def _read(wanted: type[M], content: bytes) -> M:
    """The answer; what a newer API says besides is passed over."""
    try:
        return wanted.model_validate_json(content, extra="ignore")
    except ValidationError as error:
        raise NotUnderstood(f"not the answer of this API: {_quoted(content)}") from error


def _problem(status: int, content: bytes) -> Problem:
    """The problem that an answer tells; a proxy on the way may have said it in words of its own."""
    try:
        return Problem.model_validate_json(content, extra="ignore").model_copy(update={"status": status})
    except ValidationError:
        return Problem(title="Error", status=status, detail=_quoted(content))


def _quoted(content: bytes) -> str:
    text = "".join(c if c.isprintable() else " " for c in content[:_SAID].decode("utf-8", "replace"))
    return text or "nothing"


def _seconds(retry_after: str | None) -> float | None:
    """Seconds from now, as Retry-After says it: a number or a date; None if it says neither."""
    if not retry_after:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time())
    except ValueError:
        return None
