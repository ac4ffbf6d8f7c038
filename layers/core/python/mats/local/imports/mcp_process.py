"""A transport for the SDK to an MCP server that a command starts, with bounds on bytes and guaranteed termination.

The SDK's own stdio transport bounds neither the length of a message nor their sum, and passes on only part of the
environment.
"""

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import IO, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from mats.domain.text.words import clean, clip

MAX_BYTES = 20_000_000
"""Limit of standard output and standard error together."""
MAX_MESSAGE_BYTES = 8_000_000
_CHUNK = 1 << 16
_LAST_WORDS_S, _POLL_S = 0.5, 0.01

Incoming: TypeAlias = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing: TypeAlias = MemoryObjectSendStream[SessionMessage]


class ServerProcess:
    """A server that exchanges JSON-RPC messages over standard input and output, one a line."""

    def __init__(self, command: Sequence[str], *, grace_s: float, env: Mapping[str, str]) -> None:
        """Start the process, with `env` added to its environment.

        `grace_s` is the time it has to exit, first by itself and then after SIGTERM.
        """
        self._grace_s = grace_s
        self._process = subprocess.Popen(  # noqa: S603 - the command is the user's own
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, env={**os.environ, **env},
        )  # fmt: skip
        self._bytes, self._stderr, self._problem = 0, b"", ""

    @property
    def failure(self) -> str:
        """The first problem, with the end of the server's standard error; empty if there is none."""
        words = clip(clean(self._stderr.decode("utf-8", "replace")), 300)
        return self._problem and self._problem + (f"; standard error: {words}" if words else "")

    def fail(self, problem: str) -> None:
        """Store the first problem and end the stream of messages."""
        self._problem = self._problem or problem
        self._from_server.close()

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[tuple[Incoming, Outgoing]]:
        """Streams of messages; on exit, the process and its children are ended."""
        self._from_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, self._to_server = anyio.create_memory_object_stream[SessionMessage](0)
        self._stderr_ended = anyio.Event()
        pipes = [pipe for pipe in (self._process.stdin, self._process.stdout, self._process.stderr) if pipe]
        for pipe in pipes:
            os.set_blocking(pipe.fileno(), False)
        try:
            async with anyio.create_task_group() as tasks, incoming, outgoing:
                for task, pipe in zip((self._write_stdin, self._read_stdout, self._read_stderr), pipes, strict=True):
                    tasks.start_soon(task, pipe)
                yield incoming, outgoing
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end()
            for pipe in pipes:
                pipe.close()

    async def _read_stdout(self, pipe: IO[bytes]) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the receiver is gone
            await self._read_messages(pipe)

    async def _read_messages(self, pipe: IO[bytes]) -> None:
        rest = b""
        async with self._from_server:
            async for chunk in self._chunks(pipe):
                *lines, rest = (rest + chunk).split(b"\n")
                if max(map(len, (rest, *lines))) > MAX_MESSAGE_BYTES:
                    self.fail(f"the server wrote a message of over {MAX_MESSAGE_BYTES:,} bytes, the limit")
                for line in lines:
                    if (message := self._parse(line)) and not self._problem:
                        await self._from_server.send(message)
                if self._problem:
                    return
            await self._fail_with_last_words("the server closed its standard output before it listed its tools")

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

    async def _read_stderr(self, pipe: IO[bytes]) -> None:
        async for chunk in self._chunks(pipe):
            self._stderr = (self._stderr + chunk)[-1_000:]
        self._stderr_ended.set()

    async def _chunks(self, pipe: IO[bytes]) -> AsyncIterator[bytes]:
        while True:
            await anyio.wait_readable(pipe.fileno())
            chunk = os.read(pipe.fileno(), _CHUNK)
            self._bytes += len(chunk)
            if self._bytes > MAX_BYTES:
                self.fail(f"the server wrote {self._bytes:,} bytes; the limit is {MAX_BYTES:,}")
                return
            if not chunk:
                return
            yield chunk

    async def _write_stdin(self, pipe: IO[bytes]) -> None:
        async with self._to_server:
            async for message in self._to_server:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                left = memoryview(text.encode() + b"\n")
                while left:
                    await anyio.wait_writable(pipe.fileno())
                    try:
                        left = left[os.write(pipe.fileno(), left[:_CHUNK]) :]
                    except BlockingIOError:
                        continue
                    except OSError:
                        await self._fail_with_last_words("the server does not read its standard input")
                        return

    async def _fail_with_last_words(self, if_running: str) -> None:
        """Fail: the server ended, of which its standard error tells within a short wait, or it is still running."""
        with anyio.move_on_after(_LAST_WORDS_S) as waited:
            await self._stderr_ended.wait()
        is_running = waited.cancelled_caught and self._process.poll() is None
        self.fail(if_running if is_running else "the server exited before it listed its tools")

    async def _end(self) -> None:
        """End the process group: close its input, then SIGTERM, then SIGKILL, each after the grace period."""
        if self._process.stdin:
            self._process.stdin.close()
        for signalled in (None, signal.SIGTERM, signal.SIGKILL):
            if signalled:
                self._signal(signalled)
            with anyio.move_on_after(self._grace_s):
                while self._process.poll() is None:
                    await anyio.sleep(_POLL_S)
                break
        self._signal(signal.SIGKILL)

    def _signal(self, signalled: signal.Signals) -> None:
        """Signal the process group, which exists as long as the process or a child of it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signalled)
