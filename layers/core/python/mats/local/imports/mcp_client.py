"""The tools of a live MCP server, over standard input and output or HTTP: listed, all pages, and never called.

Whatever the server does, this ends: within a time, a number of bytes and a number of pages. Its process is ended by
us. The handshake of the revisions up to 2025-11-25 is tried first; a server that has none is asked without.
"""

import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from mats.domain.errors import DependencyFailed
from mats.domain.text import clean, clip
from mats.local.imports import addresses, http
from mats.local.imports.formats import Json, mcp_tools

_LEGACY, _STATELESS = "2025-11-25", "2026-07-28"
_MOST_PAGES, _MOST_TOOLS = 200, 20_000
_MOST_BYTES, _LONGEST_MESSAGE, _CHUNK = 20_000_000, 8_000_000, 1 << 16
_CLIENT = {"name": "mats", "version": "1"}
_GRACE_S, _LAST_WORDS_S = 2.0, 0.5
_NOT_THERE = -32601


class ServerFailed(DependencyFailed):
    """An MCP server did not list its tools."""


class _Refused(Exception):
    """The server answered a request with an error of JSON-RPC."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Wire(Protocol):
    """Carries requests to a server."""

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The response to a request."""
        ...

    def tell(self, notification: Mapping[str, Any]) -> None:
        """Send what has no response."""
        ...

    def agreed(self, version: str) -> None:
        """Hear which revision is spoken from now on."""
        ...


def listed_by_command(command: Sequence[str], *, timeout_s: float) -> Json:
    """What a server that is started by a command lists.

    Raises:
        ServerFailed: it cannot be started, or does not list its tools in time and size.
    """
    with _told_to_end(), _Process(command, timeout_s) as wire:
        return _listed(wire)


def listed_by_address(url: str, *, timeout_s: float) -> Json:
    """What a server at an address lists.

    Raises:
        ServerFailed: it does not list its tools in time and size.
        Unfetchable: it cannot be reached, or must not be.
    """
    with http.Session(url, timeout_s=timeout_s, most=_MOST_BYTES) as session:
        wire = _Http(session)
        try:
            return _listed(wire)
        finally:
            wire.end()


@dataclass(slots=True)
class _Dialogue:
    wire: _Wire
    meta: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0

    def ask(self, method: str, **params: Any) -> Mapping[str, Any]:
        """The result of a request.

        Raises:
            ServerFailed: it is none.
        """
        self.number += 1
        sent = {**params, **({"_meta": self.meta} if self.meta else {})}
        request = {"jsonrpc": "2.0", "id": self.number, "method": method, **({"params": sent} if sent else {})}
        response = self.wire.ask(request)
        if isinstance(error := response.get("error"), Mapping):
            code, message = error.get("code"), error.get("message")
            raise _Refused(code if isinstance(code, int) else 0, clip(clean(str(message)), 300))
        result = response.get("result")
        if not isinstance(result, Mapping):
            raise ServerFailed(f"the server answered {method} with no result")
        return result


def _listed(wire: _Wire) -> Json:
    dialogue = _Dialogue(wire)
    try:
        _shake_hands(dialogue)
        return mcp_tools.listing(list(_pages(dialogue)))
    except _Refused as error:
        raise ServerFailed(f"the server refused to list its tools: {error} ({error.code})") from error


def _shake_hands(dialogue: _Dialogue) -> None:
    """Agree with the server on a revision; one that knows no handshake is told with each request."""
    try:
        begun = dialogue.ask("initialize", protocolVersion=_LEGACY, capabilities={}, clientInfo=_CLIENT)
    except _Refused:
        prefix = "io.modelcontextprotocol/"
        dialogue.meta = {
            f"{prefix}protocolVersion": _STATELESS, f"{prefix}clientInfo": _CLIENT, f"{prefix}clientCapabilities": {}
        }  # fmt: skip
        dialogue.wire.agreed(_STATELESS)
        return
    version = begun.get("protocolVersion")
    dialogue.wire.agreed(version if isinstance(version, str) else _LEGACY)
    dialogue.wire.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})


def _pages(dialogue: _Dialogue) -> Iterator[Mapping[str, Any]]:
    seen: set[str] = set()
    tools, cursor = 0, ""
    while True:
        page = dialogue.ask("tools/list", **({"cursor": cursor} if cursor else {}))
        given = page.get("tools")
        tools += len(given) if isinstance(given, list) else 0
        yield page
        following = page.get("nextCursor")
        if not isinstance(following, str) or not following:
            return
        if len(following) > 10_000 or following in seen or len(seen) >= _MOST_PAGES or tools > _MOST_TOOLS:
            raise ServerFailed(f"the server's list does not end: {tools:,} tools on {len(seen) + 1:,} pages so far")
        seen.add(following)
        cursor = following


@contextmanager
def _told_to_end() -> Iterator[None]:
    """Whoever ends us ends the server, too: what would kill us interrupts us instead."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where signals are not handled
        return
    before = {each: signal.signal(each, signal.default_int_handler) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _Process:
    """A server of our own that speaks over its standard input and output, a message a line."""

    def __init__(self, command: Sequence[str], timeout_s: float) -> None:
        self._command, self._timeout_s = command, timeout_s
        self._deadline = time.monotonic() + timeout_s
        self._held, self._read, self._said = b"", 0, b""

    def __enter__(self) -> "_Process":
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the command is the caller's own
                self._command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ServerFailed(f"{self._command[0]} cannot be started: {why}") from error
        self._selector = selectors.DefaultSelector()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                os.set_blocking(pipe.fileno(), False)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                self._selector.register(pipe, selectors.EVENT_READ)
        return self

    def __exit__(self, *exception: object) -> None:
        """End the process and what it has started: asked by the end of its input, then told, then killed."""
        self._selector.close()
        if self._process.stdin:
            self._process.stdin.close()
        for signalled in (None, signal.SIGTERM, signal.SIGKILL):
            if signalled is not None:
                self._signal(signalled)
            try:
                self._process.wait(_GRACE_S)
                break
            except subprocess.TimeoutExpired:
                continue
        self._signal(signal.SIGKILL)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()

    def _signal(self, signalled: signal.Signals) -> None:
        """To the group that the process leads, which outlives it if it left children."""
        try:
            os.killpg(self._process.pid, signalled)
        except (ProcessLookupError, PermissionError):
            return

    def agreed(self, version: str) -> None:
        """Nothing changes."""

    def tell(self, notification: Mapping[str, Any]) -> None:
        content = json.dumps(notification).encode() + b"\n"
        try:
            written = self._process.stdin.write(content) if self._process.stdin else 0
        except OSError as error:
            raise self._ended() from error
        if written != len(content):
            raise self._failed("the server does not read what it is asked")

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        self.tell(request)
        while True:
            message = _message(self._line())
            if message is None:
                continue
            if "method" in message and "id" in message:
                self.tell(_answer_to(message))
            elif message.get("id") == request["id"]:
                return message

    def _line(self) -> bytes:
        """The next line that the server writes."""
        while b"\n" not in self._held:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise self._failed(f"the server did not list its tools within {self._timeout_s:g} seconds")
            self._hear(left)
        line, _, self._held = self._held.partition(b"\n")
        return line

    def _hear(self, patience_s: float) -> None:
        """What the pipes hold; of standard error only the end is kept, to be told if the server fails."""
        for key, _ in self._selector.select(patience_s):
            content = os.read(key.fd, _CHUNK)
            self._read += len(content)
            if not content:
                self._selector.unregister(key.fileobj)
            if key.fileobj == self._process.stderr:
                self._said = (self._said + content)[-1_000:]
            elif content:
                self._held += content
            else:
                raise self._ended()
            if len(self._held) > _LONGEST_MESSAGE or self._read > _MOST_BYTES:
                raise self._failed(f"the server wrote {self._read:,} bytes; that is more than is read")

    def _ended(self) -> ServerFailed:
        """With what the server says last, for which it is given a moment."""
        until = time.monotonic() + _LAST_WORDS_S
        while self._selector.get_map() and (left := until - time.monotonic()) > 0:
            self._hear(left)
        return self._failed("the server ended before it listed its tools")

    def _failed(self, what: str) -> ServerFailed:
        said = clip(clean(self._said.decode("utf-8", "replace")), 300)
        return ServerFailed(f"{self._command[0]}: {what}" + (f"; it said: {said}" if said else ""))


def _message(line: bytes) -> Mapping[str, Any] | None:
    """The message on a line; None of what is none, which a server may have printed there by mistake."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, Mapping) else None


def _answer_to(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """What we answer when a server asks something: that we are there, and that we do nothing for it."""
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "ping":
        return {**answer, "result": {}}
    return {**answer, "error": {"code": _NOT_THERE, "message": "mats lists tools and does nothing else"}}


class _Http:
    """A server at an address: each message is a POST, answered with JSON or as events."""

    def __init__(self, session: http.Session) -> None:
        self._session = session
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        self._version = ""

    def agreed(self, version: str) -> None:
        self._version = clean(version)[:40]
        self._headers["MCP-Protocol-Version"] = self._version.encode("ascii", "ignore").decode()

    def tell(self, notification: Mapping[str, Any]) -> None:
        self._session.ask("POST", self._headers, json.dumps(notification).encode())

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        headers = dict(self._headers)
        if self._version == _STATELESS:
            headers["Mcp-Method"] = str(request["method"])
        with self._session.asked("POST", headers, json.dumps(request).encode()) as response:
            if session := response.headers.get("Mcp-Session-Id"):
                self._headers["Mcp-Session-Id"] = session
            if response.status in (401, 403):
                raise ServerFailed("the server wants to know who asks; import its answer to tools/list from a file")
            chunks = self._session.chunks(response)
            events = "text/event-stream" in (response.headers.get("Content-Type") or "")
            for message in map(_message, _events(chunks) if events else [b"".join(chunks)]):
                if message is not None and message.get("id") == request["id"] and "method" not in message:
                    return message
                if message is not None and response.status >= 400 and isinstance(message.get("error"), Mapping):
                    return message
            raise ServerFailed(f"the server answered {request['method']} with status {response.status} and no response")

    def end(self) -> None:
        """Let go of the session, if there is one; a server that minds does not matter any more."""
        if "Mcp-Session-Id" in self._headers:
            try:
                self._session.ask("DELETE", self._headers)
            except addresses.Unfetchable:
                return


def _events(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The data of each event of a stream."""
    data: list[bytes] = []
    held = b""
    for chunk in chunks:
        *lines, held = (held + chunk).split(b"\n")
        for line in (line.rstrip(b"\r") for line in lines):
            if line.startswith(b"data:"):
                data.append(line[5:].lstrip())
            elif not line and data:
                yield b"\n".join(data)
                data = []
    if data:
        yield b"\n".join(data)
