"""The client of one API: a timeout per attempt, retries with backoff, validated responses.

The retries are not urllib3's, which cannot sign each attempt anew or bound the time until the end of the body.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import SystemRandom
from typing import Any, Self, TypedDict, TypeVar, Unpack, cast
from urllib.parse import quote, urlencode, urlsplit

from pydantic import BaseModel, ValidationError
from urllib3 import HTTPResponse, PoolManager, Timeout
from urllib3.exceptions import HTTPError, InvalidHeader
from urllib3.util import Retry

from mats.adapters.bounded import read_bounded
from mats.client.auth import Auth
from mats.client.errors import Busy, MatsError, NotUnderstood, Unreachable, error_of
from mats.domain.capability.capability import Kind, quote_id
from mats.domain.learning.outcome import Event
from mats.domain.protocols.descriptors import Effect
from mats.domain.search.verdict import MinRelevance
from mats.edge import schema
from mats.edge.feedback import FeedbackAnswer
from mats.edge.tools.formats import ReadyMade

M = TypeVar("M", bound=BaseModel)

_MAX_BYTES = 8_000_000  # A shortlist with schemas of maximum size stays well below
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


def _parse(model: type[M], content: bytes) -> M:
    """Validate a response; unknown attributes of a newer API are ignored."""
    try:
        return model.model_validate_json(content, extra="ignore")
    except ValidationError as error:
        raise NotUnderstood(f"not a response of this API: {_quote(content)}; check the address") from error


def _problem(status: int, content: bytes) -> schema.Problem:
    """The problem in a response; a proxy may have sent another body, which is quoted."""
    try:
        return schema.Problem.model_validate_json(content, extra="ignore").model_copy(update={"status": status})
    except ValidationError:
        return schema.Problem(title="Error", status=status, detail=_quote(content))


def _quote(content: bytes) -> str:
    text = "".join(c if c.isprintable() else " " for c in content[:_MAX_QUOTED].decode("utf-8", "replace"))
    return text or "nothing"


_PAGE = 100
_LISTS = ("kinds", "namespaces", "tags", "effects")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Filters(TypedDict, total=False):
    """What a search is limited to; default: nothing."""

    kinds: Iterable[Kind | str]  # Any of these
    namespaces: Iterable[str]  # In any of these or below
    tags: Iterable[str]  # All of these
    effects: Iterable[Effect | str]  # Whose owner says any of these
    holds: Mapping[str, Any] | None
    """What the caller can call with: `auth`, `transports`, `read_only`, `leave_out`; see `Holds` of the API."""
    limit: int | None
    min_relevance: MinRelevance | None  # Only results of at least this relevance, 0 to 1, or of a `weak` match


class Client:
    """Calls one API; safe to share between threads. Every method raises a `MatsError` if it has no answer."""

    def __init__(
        self, url: str, *, auth: Auth | None = None, timeout_s: float = 10.0, retries: Retries | None = None
    ) -> None:
        """Check the arguments; nothing is sent.

        Args:
            url: The address of the API: `http://127.0.0.1:8080`, or the stack's output ApiUrl.
            auth: `SigV4` or `Bearer`; the service on this machine needs neither, unless it was given tokens.
            timeout_s: Timeout of one attempt, from connecting to the end of the body.
            retries: Number of attempts and backoff; three attempts by default.

        Raises:
            ValueError: the address is neither https nor on this machine, or `auth` is missing for a remote API.
        """
        parts = urlsplit(url)
        local = parts.hostname in _LOOPBACK
        private = parts.scheme == "https" or (parts.scheme == "http" and local)
        if not (private and parts.hostname) or parts.query or parts.username:
            raise ValueError(
                "the address must begin with https://, or with http:// on this machine, without user or query, such as "
                "https://mats.example.com"
            )
        if auth is None and not local:
            raise ValueError("`auth` is required for a remote API: pass SigV4 or Bearer")
        self._url, self._auth, self._timeout_s = url.rstrip("/"), auth, timeout_s
        self._retries, self._pool = retries or Retries(), PoolManager(maxsize=_CONNECTIONS)

    def discover(
        self, query: str | Sequence[str], *, explain: bool = False, **filters: Unpack[Filters]
    ) -> schema.Answer:
        """The capabilities that serve a request, best first.

        Args:
            query: The request in plain words, or two to seven steps of one, which the answer has as `parts`.
            explain: Add the words that matched, and the fields they matched in.
            **filters: See `Filters`.
        """
        options = {"explain": explain}
        return self._call("POST", "/discover", schema.Answer, {**_request(query, filters), **options})

    def tools(
        self,
        query: str | Sequence[str],
        format: schema.Format | str,
        *,
        known: Iterable[str] | None = None,
        **filters: Unpack[Filters],
    ) -> ReadyMade:
        """The same as tools for a model: `output` is in the format of its API.

        By default there are none below a `weak` match. With `known`, names of tools that the caller has, only others
        are defined, in order of name.
        """
        options = {"format": format, "known": None if known is None else _to_list(known)}
        return self._call("POST", "/discover", ReadyMade, {**_request(query, filters), **options})

    def capability(self, id: str) -> schema.Capability:
        """One capability in full, by `namespace/name`."""
        return self._call("GET", f"/capabilities/{quote_id(id)}", schema.Capability)

    def instructions(self, id: str) -> schema.Instructions:
        """The instructions of a skill: text of its owner, not to be trusted."""
        return self._call("GET", f"/capabilities/{quote_id(id)}/instructions", schema.Instructions)

    def list(
        self, *, kinds: Iterable[Kind | str] = (), namespaces: Iterable[str] = (), tags: Iterable[str] = ()
    ) -> Iterator[schema.ListedCapability]:
        """Every capability in order of id, a request for each hundred; the filters are those of `discover`."""
        filters = [("kind", _to_list(kinds)), ("namespace", _to_list(namespaces)), ("tag", _to_list(tags))]
        pairs = [(name, value) for name, values in filters for value in values]
        after: str | None = ""
        while after is not None:
            query = urlencode([*pairs, ("limit", _PAGE), *([("after", after)] if after else [])], quote_via=quote)
            page = self._call("GET", f"/capabilities?{query}", schema.CapabilityPage)
            yield from page.capabilities
            after = page.following

    def feedback(
        self, query_id: str, outcomes: Mapping[str, Event | str | Iterable[Event | str]], *, missing: str | None = None
    ) -> FeedbackAnswer:
        """Report what happened to the results of an answer; repeating it changes nothing.

        Args:
            query_id: Of the answer.
            outcomes: By the id of a result, `selected`, `succeeded`, `failed` or `wrong`, or several of them.
            missing: What was needed and not found, in plain words.
        """
        listed = [{"id": id, "event": event} for id, events in outcomes.items() for event in _to_list(events)]
        request = {"query_id": query_id, "outcomes": listed, **({"missing": missing} if missing else {})}
        return self._call("POST", "/feedback", FeedbackAnswer, request)

    def register(self, registrations: Sequence[Mapping[str, Any]]) -> schema.RegisteredBatch:
        """Register up to 256 items, with a token of the scope `write`; each is taken or rejected by itself."""
        return self._call(
            "POST", "/registry/capabilities", schema.RegisteredBatch, {"registrations": list(registrations)}
        )

    def health(self) -> schema.Health:
        """Tell if the API can answer, and its index and models."""
        return self._call("GET", "/healthz", schema.Health)

    def close(self) -> None:
        self._pool.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, path: str, model: type[M], body: Mapping[str, Any] | None = None) -> M:
        """The validated response of an idempotent request. Raises MatsError: see mats.client.errors."""
        data = b"" if body is None else json.dumps(body).encode()
        for attempt in range(1, self._retries.attempts + 1):
            try:
                status, after_s, content = self._send(method, path, data)
                if status in (200, 202):
                    return _parse(model, content)
                raise error_of(_problem(status, content), after_s)
            except (Busy, Unreachable) as error:
                pause_s = self._retries.pause_s(attempt, error.retry_after_s if isinstance(error, Busy) else None)
                if pause_s is None:
                    raise
                self._retries.sleep(pause_s)
        raise MatsError("`attempts` must be at least 1")

    def _send(self, method: str, path: str, data: bytes) -> tuple[int, float | None, bytes]:
        """The status of one attempt, the seconds of its Retry-After, and its body."""
        url = f"{self._url}{path}"
        headers: Mapping[str, str] = {
            "Accept": "application/json",
            **({"Content-Type": "application/json"} if data else {}),
        }
        if self._auth:
            headers = self._auth.headers(method, url, headers, data)
        deadline = time.monotonic() + self._timeout_s
        try:
            response = self._pool.request(
                method, url, body=data or None, headers=dict(headers), timeout=Timeout(total=self._timeout_s),
                retries=False, redirect=False, preload_content=False,
            )  # fmt: skip
            assert isinstance(response, HTTPResponse)  # noqa: S101 - the type a pool returns
            with response:
                body = read_bounded(response.read1, deadline, _MAX_BYTES)
                if response.status >= _ERRORS:  # which may repeat the request, with its token
                    body = body.replace(headers.get("Authorization", "").rpartition(" ")[2].encode() or b"\0", b"...")
                with suppress(InvalidHeader, ValueError):
                    return response.status, Retry().get_retry_after(response), body
                return response.status, None, body
        except OverflowError as error:
            raise NotUnderstood(str(error)) from error
        except TimeoutError as error:
            raise Unreachable("timeout while reading the response") from error
        except HTTPError as error:
            raise Unreachable(
                f"{self._url} does not answer ({type(error).__name__}): check the address and that the service runs"
            ) from error


def _request(query: str | Sequence[str], filters: Filters) -> dict[str, Any]:
    given = {name: value for name, value in filters.items() if value is not None}
    lists = {name: _to_list(cast("Iterable[str]", values)) for name, values in filters.items() if name in _LISTS}
    return {**({"query": query} if isinstance(query, str) else {"queries": list(query)}), **given, **lists}


def _to_list(values: Iterable[str]) -> list[str]:
    """The values; a string is one value, not its letters."""
    return [values] if isinstance(values, str) else list(values)
