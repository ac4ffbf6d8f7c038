"""Writer and reranker of one model server: a metered client, and its errors as errors of ours, each with what to do."""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any
from urllib.parse import quote

from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError, LocationParseError

from mats.adapters.bounded import read_bounded
from mats.adapters.chat_completions.form import Form, Output, parse_answer, request_of
from mats.adapters.llm import MAX_BYTES, LanguageModels, Meter, ModelReply, Question
from mats.domain.errors import DependencyFailed, ModelRefused, NotPermitted, OutOfTime
from mats.domain.protocols.values import value_at
from mats.domain.text.words import clip


@dataclass(slots=True)
class Forms:
    """The form that each model takes, remembered for this process; safe to use from several threads.

    `fixed` is the only way to JSON to use, if an operator chose one.
    """

    fixed: Output | None = None
    _known: dict[str, Form] = field(default_factory=dict)
    _forcing: set[str] = field(default_factory=set)
    _lock: Lock = field(default_factory=Lock)

    def of(self, model: str) -> Form:
        """The remembered form, or the first to try."""
        return self._known.get(model) or Form(self.fixed or Output.TOOL)

    def remember(self, model: str, form: Form, reply: ModelReply) -> None:
        """Remember what worked. A server that answers a forced tool call with text is not asked for one again."""
        with self._lock:
            if reply.calls:
                self._forcing.add(model)
            elif form.output is Output.TOOL and not self.fixed and model not in self._forcing:
                form = form.with_next_output()
            self._known[model] = form


@dataclass(eq=False, kw_only=True)
class ChatClient:
    """Asks models within a timeout, and counts the tokens of every response. Redirects are not followed."""

    url: str  # The address before `/chat/completions`
    key: str = field(repr=False)  # Sent as a bearer token; empty: none is sent
    meter: Meter
    forms: Forms  # Shared by the clients of a server
    timeout_s: float  # For a whole question
    connections: int  # The number of connections that are kept

    def __post_init__(self) -> None:
        self._pool = PoolManager(maxsize=self.connections, retries=False)

    def open_connection(self) -> None:
        """Reach the server, so that the next question need not connect; asks no model.

        Raises DependencyFailed: it cannot be reached; NotPermitted if it refuses the key.
        """
        status, body = self._send("GET", f"{self.url}/models", b"", min(self.timeout_s, _CONNECT_S))
        if status in _REFUSES_KEY:
            raise error_of(self.url, "the server", status, message_of(body, self.key), with_key=bool(self.key))

    def ask(self, question: Question) -> ModelReply:
        """The reply, requested as a tool call or by a JSON schema, whichever the server supports.

        Raises DependencyFailed: there was none; NotPermitted if an operator has to act, ModelRefused if the server has
        no such model or takes no form of request.
        """
        reply, form = self._exchange(question.model, lambda form: request_of(question, form))
        self.forms.remember(question.model, form, reply)
        return reply

    def send(self, request: Mapping[str, Any]) -> ModelReply:
        """The reply to a request as chat completions takes it; its limit and temperature take the server's form.

        Raises DependencyFailed: as `ask` does.
        """
        return self._exchange(request["model"], lambda form: form.applied_to(request))[0]

    def _exchange(self, model: str, request_in: Callable[[Form], dict[str, Any]]) -> tuple[ModelReply, Form]:
        """The reply to a request, and the form of it that the server took."""
        deadline = time.monotonic() + self.timeout_s
        form = self.forms.of(model)
        while True:
            body, left_s = json.dumps(request_in(form)).encode(), deadline - time.monotonic()
            status, content = self._send("POST", f"{self.url}/chat/completions", body, left_s)
            answer = _parse_json(content)
            status = status if status != 200 else status_in_body(answer) or 200
            if status == 200:
                break
            form = self._next_form(form, status, message_of(content, self.key), model)
        spent = value_at(answer, "usage")
        usage = self.meter.add(model, value_at(spent, "prompt_tokens"), value_at(spent, "completion_tokens"))
        reply = parse_answer(answer, usage)
        if reply is None:
            raise DependencyFailed(
                f"{self.url}: the response is not one of chat completions; check that MATS_LLM_URL is the address of "
                f"a model server, such as {_EXAMPLE}"
            )
        return reply, form

    def _next_form(self, form: Form, status: int, message: str, model: str) -> Form:
        """The form to try after an error. Raises DependencyFailed: the error, if it is not about the form."""
        error = error_of(self.url, model, status, message, with_key=bool(self.key))
        if isinstance(error, ModelRefused) or status not in _ABOUT_FORM or is_too_long(message):
            raise error
        other = form.after_refusal(message, model)
        if other is None:
            raise error
        if self.forms.fixed and other.output is not self.forms.fixed:
            cause = f"{status}: {message}"
            text = f"{model} at {self.url} does not take the output of MATS_LLM_OUTPUT ({cause}); set it to auto"
            raise ModelRefused(text, model=model, cause=cause) from error
        return other

    def _send(self, method: str, url: str, body: bytes, timeout_s: float) -> tuple[int, bytes]:
        if timeout_s <= 0:
            raise OutOfTime(f"{self.url} did not answer within {self.timeout_s:g} s")
        deadline = time.monotonic() + timeout_s
        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "mats"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        try:
            response = self._pool.request(
                method, url, body=body or None, headers=headers, redirect=False, preload_content=False,
                timeout=Timeout(connect=min(timeout_s, _CONNECT_S), read=timeout_s),
            )  # fmt: skip
            with response:
                return response.status, read_bounded(response.read1, deadline, MAX_BYTES)
        except TimeoutError as error:
            raise OutOfTime(f"{self.url}: the response was not complete within {self.timeout_s:g} s") from error
        except OverflowError as error:
            raise DependencyFailed(f"{self.url}: {error}") from error
        except (HTTPError, LocationParseError, OSError, ValueError) as error:
            raise DependencyFailed(
                f"{self.url} did not answer ({type(error).__name__}: {clip(str(error), 200)}); start the model server "
                "or correct MATS_LLM_URL"
            ) from error


def _parse_json(content: bytes) -> Any:
    """The JSON of a body; None if it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


_MOST = 300  # Characters quoted of a server's message
_NO_MODEL = re.compile(
    r"model_not_found|(model|deployment)\b.{0,200}?\b(not found|not exist|not available|unknown|not loaded)|"
    r"(unknown|invalid|no such) model|no endpoints found for",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LONG = re.compile(
    r"context[ _](length|size|window)|exceed_context|too (long|large|many tokens)|prompt is too", re.IGNORECASE
)
_EXAMPLE = "http://127.0.0.1:8080/v1"


def message_of(content: bytes, key: str = "") -> str:
    """The message in the body of an error, in one line, without the key."""
    body = _parse_json(content)
    said = _error_text(body) if isinstance(body, Mapping) else content.decode("utf-8", "replace")
    if key:
        said = said.replace(key, "…").replace(quote(key, safe=""), "…")
    return clip(" ".join("".join(c if c.isprintable() else " " for c in said[:2_000]).split()), _MOST)


def _error_text(body: Mapping[str, object]) -> str:
    error = body.get("error") or body.get("message") or body.get("detail")
    if not isinstance(error, Mapping):
        return str(error or "")
    code = error.get("code")
    named = f" [{code}]" if isinstance(code, str) and code else ""
    return f"{error.get('message') or ''}{named}"


def is_too_long(message: str) -> bool:
    """True if a server says that a request exceeds the model's context."""
    return bool(_TOO_LONG.search(message))


def status_in_body(answer: object) -> int:
    """The status of an error that a server reports in a body under 200; 0 if the body is no error."""
    if value_at(answer, "choices") or not value_at(answer, "error"):
        return 0
    code = value_at(answer, "error", "code")
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599 else 500


def error_of(url: str, model: str, status: int, message: str, *, with_key: bool) -> DependencyFailed:
    """The error for a status of HTTP that is not 200, with what the server says in one line."""
    what, said = f"{model} at {url}", f"{status}: {message}" if message else str(status)
    if is_too_long(message) or status == 413:
        return DependencyFailed(
            f"{what}: the request is longer than the model's context ({said}); start the server with a longer context "
            "or lower MATS_K"
        )
    if status in (400, 404, 422) and _NO_MODEL.search(message):
        text = f"{what} cannot be used ({said}); set MATS_LLM_MODEL to a model that the server has"
        return ModelRefused(text, model=model, cause=said)
    if to_do := _to_do(url, status, with_key=with_key):
        return NotPermitted(f"{what} cannot be used ({said}); {to_do}")
    if status == 429:
        return DependencyFailed(f"{what} is busy ({said}); ask less often or raise the server's limit")
    return DependencyFailed(f"{what} did not answer ({said})")


def _to_do(url: str, status: int, *, with_key: bool) -> str:
    """The remedy for a status, for an operator; empty if another attempt may help."""
    if 300 <= status < 400:
        return "the address redirects, which is not followed: set MATS_LLM_URL to the final address"
    if status in (404, 405, 410):
        return f"set MATS_LLM_URL to the address before /chat/completions, such as {_EXAMPLE}"
    if status in _REFUSES_KEY:
        return f"the server {'refuses the key' if with_key else 'asks for a key'}: set MATS_LLM_KEY to a valid one"
    return "add credit at the server or use another" if status == 402 else ""


_CONNECT_S = 2.0
_REFUSES_KEY = (401, 403, 407)
_ABOUT_FORM = frozenset({400, 404, 422, 500, 501})  # Statuses under which servers refuse a parameter


_CONNECTIONS = 256  # The number of concurrent requests of the service
_OFFLINE_TIMEOUT_S = 120  # A model on a laptop writes ten tokens a second


@dataclass(eq=False, kw_only=True)
class ChatCompletions(LanguageModels):
    """Makes writer and reranker."""

    url: str  # The address before `/chat/completions`
    key: str = field(repr=False)  # Empty: the server asks for none
    output: Output | None  # The way to JSON; None: whichever the server takes
    rerank_ms: float  # Timeout of a rerank call
    concurrency: int  # Concurrent calls of the writer

    def __post_init__(self) -> None:
        super().__post_init__()
        self._forms = Forms(self.output)

    def _client(self, timeout_s: float, connections: int) -> ChatClient:
        return ChatClient(
            url=self.url.rstrip("/"),
            key=self.key,
            meter=self.meter,
            forms=self._forms,
            timeout_s=timeout_s,
            connections=connections,
        )

    @cached_property
    def _offline(self) -> ChatClient:
        return self._client(_OFFLINE_TIMEOUT_S, self.concurrency)

    @cached_property
    def _online(self) -> ChatClient:
        return self._client(self.rerank_ms / 1000, _CONNECTIONS)

    def warning(self) -> str:
        try:
            self._online.open_connection()
        except DependencyFailed as error:
            return f"Answers come without an LLM until its server answers: {error}"
        return ""

    def openers(self) -> list[Callable[[], None]]:
        return [self._online.open_connection]

    def ask(self, question: Question) -> ModelReply:
        return self._online.ask(question)

    def ask_patiently(self, question: Question) -> ModelReply:
        return self._offline.ask(question)

    def send(self, request: Mapping[str, Any]) -> ModelReply:
        """The reply to a request of chat completions, within the timeout of a rerank call."""
        return self._online.send(request)
