"""Sessions with MCP servers over the official SDK: what is asked of them is a function.

The SDK's dispatcher correlates requests, responses and events, and its HTTP client implements Streamable HTTP. Its
stdio client is not used: it bounds neither the length of a message nor their sum. Nor is its session: it rejects a
whole list for one malformed tool. Import this module late.
"""

import json
import logging
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from inspect import signature
from typing import Any, TypeAlias, cast

import anyio
import httpx2
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.streamable_http import streamable_http_client
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER, MCP_PROTOCOL_VERSION_HEADER, encode_header_value
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    jsonrpc_message_adapter,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from pydantic import ValidationError

from mats.client.bounded_http import HEADERS, BoundedTransport, timeout_reason
from mats.domain.errors import DependencyFailed
from mats.domain.protocols.addresses import Unfetchable
from mats.domain.protocols.values import Json, objects
from mats.domain.text.words import clean, clip

MAX_BYTES = 20_000_000  # Limit of all that a server sends: of a process, on standard output and on standard error each
_MAX_MESSAGE_BYTES = 8_000_000
_EVENT_LIMIT: dict[str, Any] = (
    {"max_sse_event_size": _MAX_MESSAGE_BYTES}
    if "max_sse_event_size" in signature(streamable_http_client).parameters
    else {}
)
"""Before version 2.3 of the SDK, which agent frameworks exclude, the limit of all bytes is the only one."""
_MAX_PAGES, _MAX_TOOLS, _MAX_CURSOR = 200, 20_000, 10_000
GRACE_S = 2.0  # Time for a process to exit: first by itself, then after SIGTERM
_LAST_WORDS_S, _POLL_S = 0.5, 0.01
_CLIENT = {"name": "mats", "version": "1"}


class ServerFailed(DependencyFailed):
    """An MCP server did not answer what it was asked."""


@dataclass(frozen=True, slots=True)
class Session:
    """An initialized session; every request carries its headers and metadata."""

    dispatcher: JSONRPCDispatcher
    version: str
    meta: Mapping[str, Any]

    async def request(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of a method. Raises `MCPError` if the server rejects it."""
        headers = {MCP_PROTOCOL_VERSION_HEADER: self.version}
        if self.meta:
            headers[MCP_METHOD_HEADER] = method
            if "name" in params:
                headers[MCP_NAME_HEADER] = encode_header_value(str(params["name"]))
            params = {**params, "_meta": dict(self.meta)}
        options: CallOptions = {"headers": headers, "cancel_on_abandon": False}
        return await self.dispatcher.send_raw_request(method, params, options)


Ask: TypeAlias = Callable[[Session], Awaitable[Json]]  # What is asked of a server in a session


def ask_command(
    command: Sequence[str], ask: Ask, *, timeout_s: float, env: Mapping[str, str], grace_s: float = GRACE_S
) -> Json:
    """The answer of a server that a command starts, in this environment.

    Raises ServerFailed: it cannot be started, or does not answer within time and size.
    """
    with _end_on_termination():
        return anyio.run(_ask_command, command, ask, timeout_s, grace_s, env)


async def _ask_command(
    command: Sequence[str], ask: Ask, timeout_s: float, grace_s: float, env: Mapping[str, str]
) -> Json:
    try:
        process = await anyio.open_process(command, env=env, start_new_session=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ServerFailed(f"{command[0]} cannot be started: {reason}; check the command") from error
    server = _Server(process)
    result: Json | Exception = None
    async with server.connect(grace_s) as streams:
        with anyio.move_on_after(timeout_s):
            result = await _converse(*streams, ask)
        if result is None:
            server.fail(f"the server did not answer within {timeout_s:g} seconds")
    if result is None or isinstance(result, Exception):
        raise ServerFailed(f"{command[0]}: {server.failure or result}")
    return result


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

    Raises ServerFailed: it does not answer what it is asked; Unfetchable: it cannot be reached within time and size, or
    is blocked.
    """
    transport = BoundedTransport(url, timeout_s=timeout_s, max_bytes=max_bytes, private=private)
    return anyio.run(_ask_address, url, ask, transport, timeout_s, headers or {})


async def _ask_address(
    url: str, ask: Ask, transport: BoundedTransport, timeout_s: float, headers: Mapping[str, str]
) -> Json:
    result: Json | Exception | None = None
    client = httpx2.AsyncClient(transport=transport, headers={**headers, **HEADERS}, timeout=None)
    try:
        with anyio.move_on_after(timeout_s):
            async with client, streamable_http_client(url, http_client=client, **_EVENT_LIMIT) as streams:
                result = await _converse(*streams, ask)
    except Exception as error:
        if transport.failure is None:
            message = f"the server broke the connection ({type(error).__name__}): read its log, or try again"
            raise ServerFailed(message) from error
    if result is not None and not isinstance(result, Exception):
        return result
    status = transport.post_status
    if status in (401, 403):
        raise ServerFailed("the server requires authentication")
    if transport.failure or result is None:
        raise transport.failure or Unfetchable(url, timeout_reason(timeout_s))
    raise ServerFailed(f"{result} (HTTP status {status})" if status >= 400 else str(result)) from result


async def _converse(read: Any, write: Any, ask: Ask) -> Json | ServerFailed:
    """The answer or the error, which is not raised: the task group would wrap it in an exception group."""
    dispatcher: JSONRPCDispatcher = JSONRPCDispatcher(read, write, inline_methods=_EveryMethod())
    result: Json | ServerFailed
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run, _answer, _ignore)
        try:
            result = await ask(await _negotiate(dispatcher))
        except MCPError as error:
            message = clip(clean(error.message), 300)
            if error.code == PARSE_ERROR:
                message = "the answer is not a JSON-RPC response; check that the address is that of an MCP server"
            result = ServerFailed(f"the server rejected the request: {message} ({error.code})")
        except ServerFailed as error:
            result = error
        tasks.cancel_scope.cancel()
    return result


class _EveryMethod(frozenset[str]):
    """Contains every method: the dispatcher then answers each request of the server before it reads the next one.

    Otherwise a flood of requests could fill the memory.
    """

    def __contains__(self, method: object) -> bool:
        return True


async def _answer(context: Any, method: str, params: Any) -> dict[str, Any]:
    """Answer a request of the server: only `ping` is supported."""
    if method == "ping":
        return {}
    raise MCPError(METHOD_NOT_FOUND, "mats answers no requests of a server")


async def _ignore(context: Any, method: str, params: Any) -> None:
    """Ignore a notification."""


async def _negotiate(dispatcher: JSONRPCDispatcher) -> Session:
    """Initialize the session. A server without `initialize` gets the version with each request (2026-07-28)."""
    params = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": _CLIENT}
    try:
        result = await dispatcher.send_raw_request("initialize", params, {"cancel_on_abandon": False})
    except MCPError:
        version = LATEST_MODERN_VERSION
        meta = {PROTOCOL_VERSION_META_KEY: version, CLIENT_INFO_META_KEY: _CLIENT, CLIENT_CAPABILITIES_META_KEY: {}}
        return Session(dispatcher, version, meta)
    stated = result.get("protocolVersion")
    version = clean(stated)[:40] if isinstance(stated, str) else LATEST_HANDSHAKE_VERSION
    session = Session(dispatcher, version.encode("ascii", "ignore").decode(), {})
    await dispatcher.notify(
        "notifications/initialized", None, {"headers": {MCP_PROTOCOL_VERSION_HEADER: session.version}}
    )
    return session


async def list_tools(session: Session) -> Json:
    """The tools of all pages of `tools/list`."""
    listed: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    cursor = ""
    while True:
        page = await session.request("tools/list", {"cursor": cursor} if cursor else {})
        listed += objects(page.get("tools"))
        cursor = page.get("nextCursor") or ""
        if not isinstance(cursor, str) or not cursor:
            return {"tools": listed}
        if len(cursor) > _MAX_CURSOR or cursor in seen or len(seen) >= _MAX_PAGES or len(listed) > _MAX_TOOLS:
            raise ServerFailed(
                f"the server's list does not end: {len(listed):,} tools on {len(seen) + 1:,} pages so far"
            )
        seen.add(cursor)


class _Server:
    """A process that exchanges JSON-RPC messages over standard input and output, one a line."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._problem, self._stderr = "", b""
        self._stderr_ended = anyio.Event()
        self._from_server, self._incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._outgoing, self._to_server = anyio.create_memory_object_stream[SessionMessage](0)

    @property
    def failure(self) -> str:
        """The first problem, with the end of the server's standard error; empty if there is none."""
        words = clip(clean(self._stderr.decode("utf-8", "replace")), 300)
        more = f"standard error: {words}" if words else "run its command by hand"
        return self._problem and f"{self._problem}; {more}"

    def fail(self, problem: str) -> None:
        """Store the first problem and end the stream of messages."""
        self._problem = self._problem or problem
        self._from_server.close()

    @asynccontextmanager
    async def connect(self, grace_s: float) -> AsyncIterator[tuple[Any, Any]]:
        """Streams of messages; on exit, the process and its children are ended."""
        try:
            async with anyio.create_task_group() as tasks:
                for task in (self._read_stdout, self._read_stderr, self._write_stdin):
                    tasks.start_soon(task)
                with self._incoming, self._outgoing, self._to_server, self._from_server:
                    yield self._incoming, self._outgoing
                tasks.cancel_scope.cancel()
        finally:
            await _end(self._process, grace_s)

    async def _read_stdout(self) -> None:
        lines, size = BufferedByteReceiveStream(cast(ByteReceiveStream, self._process.stdout)), 0
        try:
            while not self._problem:
                line = await lines.receive_until(b"\n", _MAX_MESSAGE_BYTES)
                size += len(line)
                if size > MAX_BYTES:
                    self.fail(f"the server wrote over {MAX_BYTES:,} bytes, the limit")
                elif message := self._parse(line):
                    await self._from_server.send(message)
        except anyio.DelimiterNotFound:
            self.fail(f"the server wrote a message of over {_MAX_MESSAGE_BYTES:,} bytes, the limit")
        except (anyio.EndOfStream, anyio.IncompleteRead):
            await self._fail_with_last_words("closed its standard output before it answered")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the receiver is gone

    def _parse(self, line: bytes) -> SessionMessage | None:
        """The message on a line; None for any other output."""
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_python(value, by_name=False))
        except ValidationError:
            if isinstance(value, dict) and "id" in value and "method" not in value:
                self.fail("the server's answer has no result")
            return None

    async def _read_stderr(self) -> None:
        size = 0
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in cast(ByteReceiveStream, self._process.stderr):
                self._stderr = (self._stderr + chunk)[-1_000:]
                size += len(chunk)
                if size > MAX_BYTES:
                    self.fail(f"the server wrote over {MAX_BYTES:,} bytes, the limit, to standard error")
                    return
        self._stderr_ended.set()

    async def _write_stdin(self) -> None:
        stdin = cast(ByteSendStream, self._process.stdin)
        try:
            async for message in self._to_server:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stdin.send(text.encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._fail_with_last_words("does not read its standard input")

    async def _fail_with_last_words(self, if_running: str) -> None:
        """Fail: the server ended, of which its standard error tells within a short wait, or it is still running."""
        with anyio.move_on_after(_LAST_WORDS_S) as waited:
            await self._stderr_ended.wait()
        is_running = waited.cancelled_caught and self._process.returncode is None
        self.fail(f"the server {if_running if is_running else 'exited before it answered'}")


async def _end(process: Process, grace_s: float) -> None:
    """End a process and its group: close its input, then SIGTERM, then SIGKILL, each after the grace period."""
    with anyio.CancelScope(shield=True):
        if process.stdin:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await process.stdin.aclose()
        with anyio.move_on_after(grace_s):
            while process.returncode is None:
                await anyio.sleep(_POLL_S)
        await terminate_posix_process_tree(process, grace_s)
        with anyio.move_on_after(grace_s):
            await process.aclose()


@contextmanager
def _end_on_termination() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP as an interrupt, so that the server is ended before we are."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread handles signals
        return
    before = {each: signal.signal(each, _interrupt) for each in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _interrupt(*_: object) -> None:
    """Raise SIGINT, which cancels the event loop's task; shells start background processes with it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt
    signal.raise_signal(signal.SIGINT)


for _name in ("mcp", "client"):
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)  # the SDK logs failures that are reported here
