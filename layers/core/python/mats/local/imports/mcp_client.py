"""List the tools of a live MCP server with the official SDK: all pages; no tool is called.

The SDK correlates requests, responses and events and implements Streamable HTTP. Bounds on time, bytes, pages and tools
are ours, and so is parsing results: one malformed tool must not lose the others. Import this module late.
"""

import logging
import signal
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
)  # fmt: skip
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from mats.domain.errors import DependencyFailed
from mats.domain.text.words import clean, clip
from mats.local.imports.addresses import Unfetchable
from mats.local.imports.formats import Json, mcp_tools
from mats.local.imports.http import HEADERS, BoundedTransport, timeout_reason
from mats.local.imports.mcp_process import MAX_BYTES, MAX_MESSAGE_BYTES, ServerProcess

_MAX_PAGES, _MAX_TOOLS, _MAX_CURSOR = 200, 20_000, 10_000
_GRACE_S = 2.0
_CLIENT = {"name": "mats", "version": "1"}


class ServerFailed(DependencyFailed):
    """An MCP server did not list its tools."""


def list_by_command(
    command: Sequence[str], *, timeout_s: float, grace_s: float = _GRACE_S, env: Mapping[str, str] | None = None
) -> Json:
    """The tools of a server that a command starts; `env` is added to the environment.

    Raises:
        ServerFailed: it cannot be started, or does not list its tools within time and size.
    """
    with _end_on_termination():
        return anyio.run(_list_by_command, command, timeout_s, grace_s, env or {})


async def _list_by_command(command: Sequence[str], timeout_s: float, grace_s: float, env: Mapping[str, str]) -> Json:
    try:
        process = ServerProcess(command, grace_s=grace_s, env=env)
    except (OSError, ValueError) as error:
        raise ServerFailed(f"{command[0]} cannot be started: {getattr(error, 'strerror', None) or error}") from error
    result: Json | Exception | None = None
    async with process.connect() as streams:
        with anyio.move_on_after(timeout_s):
            result = await _list_tools(*streams)
    if result is None:
        process.fail(f"the server did not list its tools within {timeout_s:g} seconds")
    if result is None or isinstance(result, Exception):
        raise ServerFailed(f"{command[0]}: {process.failure or result}")
    return result


def list_by_address(url: str, *, timeout_s: float, headers: Mapping[str, str] | None = None) -> Json:
    """The tools of a server at an address; `headers` are sent with every request, which is never redirected.

    Raises:
        ServerFailed: it does not list its tools.
        Unfetchable: it cannot be reached within time and size, or is blocked.
    """
    return anyio.run(_list_by_address, url, timeout_s, headers or {})


async def _list_by_address(url: str, timeout_s: float, headers: Mapping[str, str]) -> Json:
    transport = BoundedTransport(url, timeout_s=timeout_s, max_bytes=MAX_BYTES)
    result: Json | Exception | None = None
    client = httpx2.AsyncClient(transport=transport, headers={**headers, **HEADERS}, timeout=None)
    try:
        with anyio.move_on_after(timeout_s):
            async with (
                client,
                streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
            ):
                result = await _list_tools(*streams)
    except Exception as error:
        if transport.failure is None:
            message = f"the server broke the connection ({type(error).__name__}): read its log, or try again"
            raise ServerFailed(message) from error
    if result is not None and not isinstance(result, Exception):
        return result
    status = transport.post_status
    if status in (401, 403):
        raise ServerFailed("the server requires authentication; save its tools/list result to a file and import that")
    if transport.failure or result is None:
        raise transport.failure or Unfetchable(url, timeout_reason(timeout_s))
    raise ServerFailed(f"{result} (HTTP status {status})" if status >= 400 else str(result)) from result


async def _list_tools(read: Any, write: Any) -> Json | ServerFailed:
    """The tools or the error, which is not raised: the task group would wrap it in an exception group."""
    dispatcher: JSONRPCDispatcher = JSONRPCDispatcher(read, write, inline_methods=_EveryMethod())
    result: Json | ServerFailed
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run, _answer, _ignore)
        try:
            result = mcp_tools.merge_pages([page async for page in _pages(dispatcher, *await _negotiate(dispatcher))])
        except MCPError as error:
            message = clip(clean(error.message), 300)
            if error.code == PARSE_ERROR:
                message = "the answer is not a JSON-RPC response"
            result = ServerFailed(f"the server rejected tools/list: {message} ({error.code})")
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
    raise MCPError(METHOD_NOT_FOUND, "mats lists tools and does nothing else")


async def _ignore(context: Any, method: str, params: Any) -> None:
    """Ignore a notification."""


async def _negotiate(dispatcher: JSONRPCDispatcher) -> tuple[dict[str, str], dict[str, Any]]:
    """Initialize the session; the headers and metadata of every later request.

    A server without `initialize` gets the version with each request (2026-07-28).
    """
    params = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": _CLIENT}
    try:
        result = await dispatcher.send_raw_request("initialize", params, {"cancel_on_abandon": False})
    except MCPError:
        version = LATEST_MODERN_VERSION
        meta = {PROTOCOL_VERSION_META_KEY: version, CLIENT_INFO_META_KEY: _CLIENT, CLIENT_CAPABILITIES_META_KEY: {}}
        return {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: "tools/list"}, meta
    stated = result.get("protocolVersion")
    version = clean(stated)[:40] if isinstance(stated, str) else LATEST_HANDSHAKE_VERSION
    headers = {MCP_PROTOCOL_VERSION_HEADER: version.encode("ascii", "ignore").decode()}
    await dispatcher.notify("notifications/initialized", None, {"headers": headers})
    return headers, {}


async def _pages(
    dispatcher: JSONRPCDispatcher, headers: dict[str, str], meta: dict[str, Any]
) -> AsyncIterator[Mapping[str, Any]]:
    seen: set[str] = set()
    tools, cursor = 0, ""
    while True:
        params = {**({"cursor": cursor} if cursor else {}), **({"_meta": meta} if meta else {})}
        options: CallOptions = {"headers": headers, "cancel_on_abandon": False}
        page = await dispatcher.send_raw_request("tools/list", params, options)
        entries = page.get("tools")
        tools += len(entries) if isinstance(entries, list) else 0
        yield page
        cursor = page.get("nextCursor") or ""
        if not isinstance(cursor, str) or not cursor:
            return
        if len(cursor) > _MAX_CURSOR or cursor in seen or len(seen) >= _MAX_PAGES or tools > _MAX_TOOLS:
            raise ServerFailed(f"the server's list does not end: {tools:,} tools on {len(seen) + 1:,} pages so far")
        seen.add(cursor)


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
