"""Sessions with MCP servers over standard streams or Streamable HTTP: what is asked of them is a function.

No session of an SDK is used: they bound neither the length of a message nor the sum of all, and reject a whole list for
one malformed tool. A request of the server is answered before its next message is read, so that no flood of them fills
the memory. Import this module late.
"""

import asyncio
import base64
import json
import os
import re
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import anyio
import httpx2
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from mats.client.bounded_http import HEADERS, BoundedTransport, timeout_reason
from mats.domain.errors import DependencyFailed
from mats.domain.protocols.addresses import Unfetchable
from mats.domain.protocols.protocol import Json, objects
from mats.domain.text.words import clean, clip

MAX_BYTES = 20_000_000  # Limit of all that a server sends: of a process, on standard output and on standard error each
_MAX_MESSAGE_BYTES = 8_000_000
_MAX_PAGES, _MAX_TOOLS, _MAX_CURSOR = 200, 20_000, 10_000
GRACE_S = 2.0  # Time for a process to exit: first by itself, then after SIGTERM
_LAST_WORDS_S, _POLL_S = 0.5, 0.01
_CLIENT = {"name": "mats", "version": "1"}
_HANDSHAKE, _STATELESS = "2025-11-25", "2026-07-28"  # The latest versions of the protocol with and without `initialize`
_META = "io.modelcontextprotocol/"
_PLAIN = re.compile(r"(?!=\?)[!-~]([ -~]*[!-~])?")  # What a header carries as it is
_NOT_FOUND = {"code": -32601, "message": "mats answers no requests of a server"}


class ServerFailed(DependencyFailed):
    """An MCP server did not answer what it was asked."""


class Rejected(ServerFailed):
    """An MCP server answered with an error, of which `reason` is the text."""

    def __init__(self, error: object, code: object = None) -> None:
        stated = error if isinstance(error, Mapping) else {}
        self.reason = clip(clean(str(stated.get("message", ""))), 300)
        super().__init__(f"the server rejected the request: {self.reason} ({code or stated.get('code')})")


Send: TypeAlias = Callable[[Json, Mapping[str, str]], AsyncIterator[bytes]]
"""Sends a message, over HTTP with headers; what the server sends next, if the message is a request."""


@dataclass(slots=True)
class Session:
    """An initialized session; every request carries its headers and metadata."""

    send: Send
    declared: Mapping[str, Any] = field(default_factory=dict)  # The server's capabilities, as its handshake has them
    headers: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    asked: int = 0  # Requests so far

    async def initialize(self) -> None:
        """Shake hands. A server without `initialize` gets the version with each request (2026-07-28)."""
        params = {"protocolVersion": _HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT}
        try:
            result = await self.request("initialize", params)
        except Rejected:
            self.headers = {"MCP-Protocol-Version": _STATELESS}
            meta = {"protocolVersion": _STATELESS, "clientInfo": _CLIENT, "clientCapabilities": {}}
            self.meta, result = {f"{_META}{name}": value for name, value in meta.items()}, {}
            with suppress(Rejected):
                result = await self.request("server/discover", {})
        else:
            version = clean(str(result.get("protocolVersion", _HANDSHAKE)))[:40].encode("ascii", "ignore").decode()
            self.headers = {"MCP-Protocol-Version": version}
            await self._tell({"method": "notifications/initialized"})
        given = result.get("capabilities")
        self.declared = given if isinstance(given, Mapping) else {}

    async def request(self, method: str, params: Mapping[str, Any]) -> Json:
        """The result of a method. Raises `Rejected` if the server answers with an error."""
        self.asked += 1
        id, headers = self.asked, dict(self.headers)
        if self.meta:
            named = params.get("uri" if method == "resources/read" else "name")
            headers |= {"Mcp-Method": method, **({} if named is None else {"Mcp-Name": _header_value(str(named))})}
            params = {**params, "_meta": self.meta}
        sent = self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params}, headers)
        async with aclosing(cast("Any", sent)) as messages:
            async for text in messages:
                try:
                    message = json.loads(text)
                except (ValueError, RecursionError):
                    continue  # it is no message
                if not isinstance(message, dict) or "id" not in message:
                    continue
                if "method" in message:
                    answer = {"result": {}} if message["method"] == "ping" else {"error": _NOT_FOUND}
                    await self._tell({"id": message["id"], **answer})
                elif message["id"] == id and "error" in message:
                    raise Rejected(message["error"])
                elif message["id"] == id:
                    if not isinstance(message.get("result"), dict):
                        raise ServerFailed("the server's answer has no result")
                    return cast("Json", message["result"])
        raise ServerFailed("the answer is not a JSON-RPC response")

    async def _tell(self, message: Mapping[str, Any]) -> None:
        async for _ in self.send({"jsonrpc": "2.0", **message}, self.headers):
            pass


Ask: TypeAlias = Callable[[Session], Awaitable[Json]]  # What is asked of a server in a session


def _is_request(message: Json) -> bool:
    return "id" in message and "method" in message


def _header_value(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else f"=?base64?{base64.b64encode(text.encode()).decode()}?="


async def list_tools(session: Session) -> Json:
    return {"tools": await list_all(session, "tools")}


async def list_all(session: Session, what: str) -> list[Mapping[str, Any]]:
    """The entries of all pages of `tools/list`, or another such method."""
    listed: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    cursor = ""
    while True:
        page = await session.request(f"{what}/list", {"cursor": cursor} if cursor else {})
        listed += objects(page.get(what))
        cursor = page.get("nextCursor") or ""
        if not isinstance(cursor, str) or not cursor:
            return listed
        if len(cursor) > _MAX_CURSOR or cursor in seen or len(seen) >= _MAX_PAGES or len(listed) > _MAX_TOOLS:
            raise ServerFailed(
                f"the server's list does not end: {len(listed):,} {what} on {len(seen) + 1:,} pages so far"
            )
        seen.add(cursor)


async def _converse(send: Send, ask: Ask, timeout_s: float) -> Json:
    """The answer. Raises TimeoutError: it is not there in time."""
    async with asyncio.timeout(timeout_s):
        session = Session(send)
        await session.initialize()
        return await ask(session)


async def _lines(stream: Any) -> AsyncIterator[bytes]:
    """The lines of a stream of bytes, within the limits."""
    lines, size = BufferedByteReceiveStream(stream), 0
    try:
        while size <= MAX_BYTES:
            line = await lines.receive_until(b"\n", _MAX_MESSAGE_BYTES)
            size += len(line)
            yield line
    except anyio.DelimiterNotFound as error:
        raise ServerFailed(f"the server wrote a message of over {_MAX_MESSAGE_BYTES:,} bytes, the limit") from error
    except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return
    raise ServerFailed(f"the server wrote over {MAX_BYTES:,} bytes, the limit")


def _run(work: Coroutine[Any, Any, Json]) -> Json:
    """Run a coroutine; SIGTERM and SIGHUP interrupt it as SIGINT does, so that a process of it is ended first."""

    async def main() -> Json:
        task = asyncio.ensure_future(work)
        if threading.current_thread() is threading.main_thread():  # only this one handles signals
            for each in (signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(each, task.cancel)
        return await task

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def ask_command(
    command: Sequence[str], ask: Ask, *, timeout_s: float, env: Mapping[str, str], grace_s: float = GRACE_S
) -> Json:
    """The answer of a server that a command starts, in this environment.

    Raises:
        ServerFailed: it cannot be started, or does not answer within time and size.
    """
    return _run(_ask_command(command, ask, timeout_s, grace_s, env))


async def _ask_command(
    command: Sequence[str], ask: Ask, timeout_s: float, grace_s: float, env: Mapping[str, str]
) -> Json:
    try:
        process = await anyio.open_process(command, env=env, start_new_session=True)
    except (OSError, ValueError) as error:
        raise ServerFailed(f"{command[0]} cannot be started: {getattr(error, 'strerror', None) or error}") from error
    words = bytearray()  # The end of standard error
    reading = asyncio.create_task(_read_end(cast(ByteReceiveStream, process.stderr), words))
    try:
        return await _converse(_over_streams(process), ask, timeout_s)
    except (ServerFailed, TimeoutError) as error:
        await asyncio.wait([reading], timeout=_LAST_WORDS_S)
        problem = str(error) or f"the server did not answer within {timeout_s:g} seconds"
        said = clip(clean(words.decode("utf-8", "replace")), 300)
        raise ServerFailed(f"{command[0]}: {problem}{said and f'; standard error: {said}'}") from error
    finally:
        reading.cancel()
        await _end(process, grace_s)


def _over_streams(process: Process) -> Send:
    """Messages over standard input and output, one a line."""
    lines, stdin = _lines(process.stdout), cast(ByteSendStream, process.stdin)

    async def send(message: Json, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
        with suppress(anyio.BrokenResourceError, OSError):  # then its standard output ends, too, or the time
            await stdin.send(json.dumps(message).encode() + b"\n")
        if _is_request(message):
            async for line in lines:
                yield line
            raise ServerFailed("the server exited before it answered")

    return send


async def _read_end(stream: ByteReceiveStream, end: bytearray) -> None:
    """Keep the end of a stream. Beyond the limit nothing is read, and the process has to wait."""
    left = MAX_BYTES
    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        while left > 0:
            end += (chunk := await stream.receive())
            left -= len(chunk)
            del end[:-1_000]


async def _end(process: Process, grace_s: float) -> None:
    """End a process and its group: close its input, then SIGTERM, then SIGKILL, each after the grace period."""
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await cast(ByteSendStream, process.stdin).aclose()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with anyio.move_on_after(grace_s):
            while process.returncode is None:
                await anyio.sleep(_POLL_S)
        with suppress(OSError):
            os.killpg(process.pid, number)
    with anyio.move_on_after(grace_s):
        await process.aclose()


def ask_address(
    url: str,
    ask: Ask,
    *,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
    max_bytes: int = MAX_BYTES,
    private: bool = True,
) -> Json:
    """The answer of a server at an address; `headers` are sent with every request, which is never redirected.

    Raises:
        ServerFailed: it does not answer what it is asked.
        Unfetchable: it cannot be reached within time and size, or is blocked.
    """

    async def converse() -> Json:
        async with BoundedTransport(url, timeout_s=timeout_s, max_bytes=max_bytes, private=private) as transport:
            try:
                return await _converse(_over_http(url, headers or {}, transport), ask, timeout_s)
            except TimeoutError as error:
                raise Unfetchable(url, timeout_reason(timeout_s)) from error

    return _run(converse())


def _over_http(url: str, headers: Mapping[str, str], transport: BoundedTransport) -> Send:
    """Messages as requests, which the server answers with JSON, or with events of which one is the answer."""
    media = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    fixed = {**headers, **HEADERS, **media}

    async def send(message: Json, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
        request = httpx2.Request("POST", url, headers={**fixed, **headers}, json=message)
        async with aclosing(await transport.handle_async_request(request)) as response:
            if not _is_request(message):
                return
            body = cast("AsyncIterator[bytes]", response.aiter_raw())
            if session := response.headers.get("Mcp-Session-Id"):
                fixed["Mcp-Session-Id"] = session
            if response.status_code >= 400:
                raise _refusal(response.status_code, b"".join([chunk async for chunk in body]))
            if response.headers.get("Content-Type", "").startswith("text/event-stream"):
                async for data in _events(body):
                    yield data
            else:
                yield b"".join([chunk async for chunk in body])

    return send


def _refusal(status: int, body: bytes) -> ServerFailed:
    if status in (401, 403):
        return ServerFailed("the server requires authentication")
    with suppress(ValueError, RecursionError, AttributeError):
        return Rejected(json.loads(body).get("error"), f"HTTP status {status}")
    return Rejected(None, f"HTTP status {status}")


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of server-sent events."""
    data = list[bytes]()
    async for line in _lines(_Chunks(chunks)):
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:"))
        elif not line.strip() and data:
            yield b"\n".join(data)
            data = []


@dataclass(slots=True)
class _Chunks:
    """An iterator as the stream that anyio buffers."""

    chunks: AsyncIterator[bytes]

    async def receive(self) -> bytes:
        with suppress(StopAsyncIteration):
            return await anext(self.chunks)
        raise anyio.EndOfStream
