"""Stands between functions and the services: writes down every call, and lets a test spoil any of them."""

import http.client
import itertools
import json
import select
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit

from tests.aws import iam
from tests.aws.calls import SIGNED_AS, Account, Call, Service
from tests.aws.listening import LoopbackServer, QuietConnection

__all__ = ["Account", "Act", "Call", "Cut", "Play", "Recorder", "Refuse", "RefuseEntries", "Stall", "every", "nth"]

FRESH_S = 5.0  # how long an idle connection to a service is trusted
HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "expect"}


@dataclass(frozen=True)
class Refuse:
    """An error of the service instead of an answer; the service does not see the call."""

    status: int = 503
    code: str = "ServiceUnavailable"


@dataclass(frozen=True)
class Stall:
    """No answer for so long, then the end of the connection; the service does not see the call."""

    seconds: float = 60.0


@dataclass(frozen=True)
class Cut:
    """The end of the connection: before the service sees the call, or `after` it did what was asked."""

    after: bool = False


@dataclass(frozen=True)
class RefuseEntries:
    """An answer of PutEvents that refuses the entries with one of these names in their keys, and takes the others."""

    names: tuple[str, ...]
    code: str = "ThrottlingException"


Act: TypeAlias = Refuse | Stall | Cut | RefuseEntries
Play: TypeAlias = Callable[[Call], Act | None]
"""The outcome of a call; None lets it pass. Called from many threads at once."""


def every(
    act: Act, *, service: Service | None = None, operation: str | None = None, writes: bool | None = None
) -> Play:
    """Spoil all calls that are of this service and operation, and write or not."""
    wanted = {"service": service, "operation": operation, "writes": writes}
    asked = {name: value for name, value in wanted.items() if value is not None}
    return lambda call: act if all(getattr(call, name) == value for name, value in asked.items()) else None


def nth(number: int, act: Act, **asked: Any) -> Play:
    """Spoil the n-th call, counted from 1, among those that `every` would spoil."""
    numbers, lock, chosen = itertools.count(1), threading.Lock(), every(act, **asked)

    def play(call: Call) -> Act | None:
        if not chosen(call):
            return None
        with lock:
            return act if next(numbers) == number else None

    return play


class Recorder:
    """Listens while it is entered: one loopback port for each service.

    `dynamodb`, `opensearch` and `bedrock` are where calls go on to. PutEvents is answered here, its entries are kept in
    `entries`. A call to any other service is refused, as is one that is not signed for its service.
    Leaving raises what went wrong in a play.
    """

    def __init__(
        self,
        *,
        dynamodb: str | None = None,
        opensearch: str | None = None,
        bedrock: str | None = None,
        account: Account | None = None,
    ) -> None:
        self.play: Play | None = None
        self.calls: list[Call] = []
        self.entries: list[dict[str, Any]] = []
        self.strangers: list[str] = []
        """Calls that were refused because of their service or signature."""
        self.mistakes: list[BaseException] = []
        self.account = account or Account()
        self._upstream: dict[Service, str | None] = {
            "dynamodb": dynamodb, "opensearch": opensearch, "bedrock": bedrock, "events": None, "other": None,
        }  # fmt: skip
        self._listeners: dict[Service, _Listener] = {}

    def url(self, service: Service) -> str:
        return self._listeners[service].url

    def environment(self) -> dict[str, str]:
        """The variables that lead AWS's clients here, whatever the service; OpenSearch goes by a setting of our own."""
        return {
            "AWS_ENDPOINT_URL": self.url("other"),
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": self.url("bedrock"),
            "AWS_ENDPOINT_URL_DYNAMODB": self.url("dynamodb"),
            "AWS_ENDPOINT_URL_EVENTBRIDGE": self.url("events"),
        }

    @property
    def needs(self) -> list[tuple[str, str]]:
        """Every (action, resource) that was asked for, each once, in the order of its first call."""
        return list(dict.fromkeys(need for call in list(self.calls) for need in call.needs))

    def refused(self, statements: Iterable[iam.Statement]) -> list[tuple[str, str]]:
        """The (action, resource) pairs that were asked for and that these statements do not allow; each once."""
        known = list(statements)
        asked = dict.fromkeys((need, tuple(call.context.items())) for call in list(self.calls) for need in call.needs)
        return [need for need, context in asked if not iam.allowed(known, *need, dict(context))]

    def take_entries(self) -> list[dict[str, Any]]:
        taken = list(self.entries)
        del self.entries[: len(taken)]
        return taken

    def __enter__(self) -> Self:
        for service in self._upstream:
            listener = self._listeners[service] = _Listener(self, service)
            listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for listener in self._listeners.values():
            listener.stop()
        if self.mistakes and kind is None:
            raise self.mistakes[0]

    def enter(self, call: Call) -> Act | None:
        """Write the call down and decide what becomes of it."""
        self.calls.append(call)
        expected = SIGNED_AS.get(call.service)
        if call.signed_as != expected:
            self.strangers.append(f"{call.service} {call.operation}, signed as {call.signed_as or 'nothing'}")
            return Refuse(403, "AccessDeniedException")
        try:
            return self.play(call) if self.play else None
        except Exception as mistake:
            self.mistakes.append(mistake)
            return Refuse(500, "InternalServerError")

    def answered_here(self, call: Call, act: Act | None = None) -> bytes:
        results: list[dict[str, str]] = []
        for entry in call.content["Entries"]:
            name = json.loads(entry["Detail"]).get("keys", {}).get("name", {}).get("S")
            if isinstance(act, RefuseEntries) and name in act.names:
                results.append({"ErrorCode": act.code, "ErrorMessage": "said the test"})
            else:
                self.entries.append(entry)
                results.append({"EventId": str(uuid.uuid4())})
        refused = sum("ErrorCode" in each for each in results)
        return json.dumps({"FailedEntryCount": refused, "Entries": results}).encode()

    def upstream(self, service: Service) -> str | None:
        """Where calls to it go on to; None when they are answered here."""
        return self._upstream[service]


class _Listener(LoopbackServer):
    def __init__(self, recorder: Recorder, service: Service) -> None:
        self.recorder, self.service = recorder, service
        super().__init__(_Handler, mistakes=recorder.mistakes)


class _Handler(QuietConnection):
    server: _Listener
    _onward: http.client.HTTPConnection | None = None
    _used_at = 0.0

    def finish(self) -> None:
        super().finish()
        if self._onward:
            self._onward.close()

    def _call(self) -> None:
        recorder, service = self.server.recorder, self.server.service
        body = self.content()
        if len(body) < int(self.headers.get("Content-Length") or 0):  # killed while it was asking: nobody sees it
            self.close_connection = True
            return
        if (self.command, self.path) == ("GET", "/") and "Authorization" not in self.headers:
            self.reply(200)  # a connection that is opened ahead of the first call
            return
        call = recorder.account.read(service, self.command, self.path, self.headers, body)
        self._perform(recorder.enter(call), call)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _call  # noqa: N815  as the standard library wants them called

    def _perform(self, act: Act | None, call: Call) -> None:
        match act:
            case Refuse(status, code):
                self._refuse(call.service, status, code)
                return
            case Stall(seconds):
                ends = select.poll()
                ends.register(self.connection, select.POLLIN)
                ends.poll(seconds * 1000)  # or until whoever asked leaves
                self.close_connection = True
                return
            case Cut(after=False):
                self.close_connection = True
                return
        status, headers, content = self._passed_on(call, act)
        if isinstance(act, Cut):
            self.close_connection = True
            return
        self.reply(status, content, headers)

    def _passed_on(self, call: Call, act: Act | None) -> tuple[int, Mapping[str, str], bytes]:
        upstream = self.server.recorder.upstream(call.service)
        if upstream is None:
            return 200, {"Content-Type": "application/x-amz-json-1.1"}, self.server.recorder.answered_here(call, act)
        if self._onward is None or time.monotonic() - self._used_at > FRESH_S:
            if self._onward:
                self._onward.close()
            self._onward = http.client.HTTPConnection(urlsplit(upstream).netloc, timeout=120)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        try:
            self._onward.request(call.method, self.path, call.body or None, headers)
            answer = self._onward.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._onward.close()
            self._onward = None
            self.close_connection = True
            raise ConnectionAbortedError from None
        self._used_at = time.monotonic()
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in HOP_BY_HOP}
        if call.method == "HEAD":
            kept["Content-Length"] = answer.getheader("Content-Length") or "0"
        return answer.status, kept, content

    def _refuse(self, service: Service, status: int, code: str) -> None:
        said = f"{code}, said the test"
        content: dict[str, Any] = {"__type": code, "message": said}
        if service == "opensearch":
            reason = {"type": code, "reason": said}
            content = {"error": {"root_cause": [reason], **reason}, "status": status}
        headers = {"Content-Type": "application/json", "x-amzn-ErrorType": code}
        self.reply(status, json.dumps(content).encode(), headers)
