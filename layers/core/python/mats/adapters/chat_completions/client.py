"""A metered client of one model server."""

import json
import time
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from urllib3 import PoolManager, Timeout
from urllib3.exceptions import HTTPError, LocationParseError

from mats.adapters.chat_completions.faults import (
    error_of,
    is_too_long,
    message_of,
    output_refused,
    status_in_body,
    unexpected_answer,
)
from mats.adapters.chat_completions.form import Form, Output, parse_answer, request_of, token_counts
from mats.adapters.llm.meter import Meter
from mats.adapters.llm.question import ModelReply, Question
from mats.domain.errors import DependencyFailed, ModelRefused, OutOfTime
from mats.domain.text.words import clip

_CHUNK = 65_536
_MAX_BYTES = 32_000_000
"""Far beyond any reply; bounds the memory that an endless body can take."""
_CONNECT_S = 2.0
_ABOUT_FORM = frozenset({400, 404, 422, 500, 501})
"""Statuses under which servers refuse a parameter."""


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

    def after_refusal(self, form: Form, message: str, model: str) -> Form | None:
        """The form to try after this error; None if there is none."""
        other = form.after_refusal(message, model)
        return None if other and self.fixed and other.output is not self.fixed else other

    def learn(self, model: str, form: Form, reply: ModelReply) -> None:
        """Remember what worked. A server that answers a forced tool call with text is not asked for one again."""
        with self._lock:
            if reply.calls:
                self._forcing.add(model)
            elif form.output is Output.TOOL and not self.fixed and model not in self._forcing:
                form = form.with_next_output()
            self._known[model] = form


class ChatClient:
    """Asks models within a timeout, and counts the tokens of every response. Redirects are not followed."""

    def __init__(self, url: str, key: str, *, meter: Meter, forms: Forms, timeout_s: float, connections: int) -> None:
        """Make no call yet.

        Args:
            url: The address before `/chat/completions`.
            key: Sent as a bearer token; empty: none is sent.
            meter: Counts the usage.
            forms: Shared by the clients of a server.
            timeout_s: For a whole question.
            connections: The number of connections that are kept.
        """
        self._url, self._key = url.rstrip("/"), key
        self._meter, self._forms, self._timeout_s = meter, forms, timeout_s
        self._pool = PoolManager(maxsize=connections, retries=False)

    def open_connection(self) -> None:
        """Reach the server, so that the next question need not connect; asks no model.

        Raises:
            DependencyFailed: it cannot be reached.
        """
        self._send("GET", f"{self._url}/models", b"", min(self._timeout_s, _CONNECT_S))

    def ask(self, question: Question) -> ModelReply:
        """The reply, by the form that the server takes.

        Raises:
            DependencyFailed: there was none; NotPermitted if an operator has to act, ModelRefused if the server has no
                such model or takes no form of request.
        """
        deadline = time.monotonic() + self._timeout_s
        form = self._forms.of(question.model)
        while True:
            status, content = self._post(request_of(question, form), deadline)
            answer = _parse_json(content)
            status = status if status != 200 else status_in_body(answer) or 200
            if status == 200:
                break
            message = message_of(content, self._key)
            form = self._next_form(form, status, message, question.model)
        reply = parse_answer(answer, self._meter.add(question.model, *token_counts(answer)))
        if reply is None:
            raise unexpected_answer(self._url)
        self._forms.learn(question.model, form, reply)
        return reply

    def _next_form(self, form: Form, status: int, message: str, model: str) -> Form:
        """The form to try after an error.

        Raises:
            DependencyFailed: the error, if it is not about the form.
        """
        error = error_of(self._url, model, status, message, with_key=bool(self._key))
        if isinstance(error, ModelRefused) or status not in _ABOUT_FORM or is_too_long(message):
            raise error
        if other := self._forms.after_refusal(form, message, model):
            return other
        if form.after_refusal(message, model):  # what the server refuses is what an operator chose
            raise output_refused(self._url, model, f"{status}: {message}") from error
        raise error

    def _post(self, body: dict[str, Any], deadline: float) -> tuple[int, bytes]:
        left_s = deadline - time.monotonic()
        return self._send("POST", f"{self._url}/chat/completions", json.dumps(body).encode(), left_s)

    def _send(self, method: str, url: str, body: bytes, timeout_s: float) -> tuple[int, bytes]:
        if timeout_s <= 0:
            raise OutOfTime(f"{self._url} did not answer within {self._timeout_s:g} s")
        deadline = time.monotonic() + timeout_s
        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": "mats"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            response = self._pool.request(
                method, url, body=body or None, headers=headers, redirect=False, preload_content=False,
                timeout=Timeout(connect=min(timeout_s, _CONNECT_S), read=timeout_s),
            )  # fmt: skip
            with response:
                return response.status, self._body_of(response, deadline)
        except (HTTPError, LocationParseError, OSError, ValueError) as error:
            raise DependencyFailed(
                f"{self._url} did not answer ({type(error).__name__}: {clip(str(error), 200)}); start the model server "
                "or correct MATS_LLM_URL"
            ) from error

    def _body_of(self, response: Any, deadline: float) -> bytes:
        """The body, within its deadline and maximum size."""
        body = bytearray()
        while chunk := response.read1(_CHUNK):
            body += chunk
            if len(body) > _MAX_BYTES:
                raise DependencyFailed(f"{self._url}: the response has more than {_MAX_BYTES:,} bytes")
            if time.monotonic() > deadline:
                raise OutOfTime(f"{self._url}: the response was not complete within {self._timeout_s:g} s")
        return bytes(body)


def _parse_json(content: bytes) -> Any:
    """The JSON of a body; None if it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
