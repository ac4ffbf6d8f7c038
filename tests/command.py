"""The `mats` command over one folder: in this process, or as a process of its own."""

import http.client
import json
import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, field
from functools import cache
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from mats.adapters.encoder.local import LocalEncoder
from mats.adapters.sqlite.database import Database
from mats.domain.search.lookups import Vector
from mats.edge.route import TokenScope
from mats.local.cli import output
from mats.local.cli.main import app
from mats.local.tokens import OWN, TOKENS, Token, digest
from mats.settings import Settings

ROOT = Path(__file__).parents[1]
PROGRAM = [sys.executable, "-m", "mats.local.cli"]
SERVERS = {"serve", "mcp"}  # Commands that talk over sockets or pipes until they are stopped: always processes

_one_at_a_time = threading.RLock()  # Standard streams and the environment belong to the whole process


@dataclass(frozen=True)
class Ran:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    def __post_init__(self) -> None:
        assert "Traceback" not in self.err

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def done(self) -> "Ran":
        """Itself, if it ended well."""
        assert self.code == 0, self.err
        return self

    def fails(self, code: int, *said: str) -> "Ran":
        """Itself, if it ended with this exit code and its errors, in one line, say all of this."""
        assert self.code == code, self
        assert all(part in self.err or part in " ".join(self.err.split()) for part in said), self.err
        return self


@dataclass(frozen=True)
class Mats:
    """The command over one folder."""

    home: Path
    encoder: str = "none"
    folder: Path = ROOT  # The working directory
    more: Mapping[str, str] = field(default_factory=dict)  # Other variables of the environment
    started: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        named = {line.split()[0] for line in Settings.unknown(os.environ)}  # of the tests themselves
        inherited = {name: value for name, value in os.environ.items() if name not in named}
        return {**inherited, "MATS_HOME": str(self.home), "MATS_ENCODER": self.encoder, "COLUMNS": "200", **self.more}

    def __call__(self, *arguments: str, stdin: bytes = b"", **more: str) -> Ran:
        """Run a command in this process, which has imported everything and loaded the encoder before."""
        if SERVERS & {*arguments[:1]}:
            return self.process(*arguments, stdin=stdin, **more)
        with _one_at_a_time, in_process({**self.environment, **more}, stdin, folder=self.folder) as (out, err):
            try:
                app(args=list(arguments), prog_name="mats")
                code = 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            return Ran(code, _text(out), _text(err))

    def process(self, *arguments: str, stdin: bytes = b"", **more: str) -> Ran:
        """Run the installed command as a person does, in a process of its own."""
        process = self.start(*arguments, settings=more, stdin=subprocess.PIPE)
        out, err = process.communicate(stdin, timeout=300)
        return Ran(process.returncode, out.decode(), err.decode())

    def start(
        self, *arguments: str, settings: Mapping[str, str] | None = None, **more: Any
    ) -> "subprocess.Popen[bytes]":
        """Start a process with these options of `Popen` and do not wait for it."""
        process = subprocess.Popen(
            [*PROGRAM, *arguments],
            env={**self.environment, **(settings or {})}, cwd=self.folder, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **more,
        )  # fmt: skip
        self.started.append(process)
        return process

    def kill(self) -> None:
        """End every process that a failed test has left running."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()


def rows(*items: Mapping[str, Any]) -> bytes:
    """Items as lines of JSON."""
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


def tool(name: str, **about: Any) -> dict[str, Any]:
    """An item of a tool."""
    return {"namespace": "com.acme", "name": name, "kind": "tool", **about}


@contextmanager
def in_process(
    environment: dict[str, str], stdin: bytes = b"", *, folder: Path = ROOT
) -> Iterator[tuple[TextIOWrapper, TextIOWrapper]]:
    """Standard streams, environment, working directory, logging and hooks of one command; all restored afterwards."""
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with ExitStack() as patched:
        patched.enter_context(mock.patch.dict(os.environ, environment, clear=True))
        patched.enter_context(mock.patch.object(sys, "stdin", TextIOWrapper(BytesIO(stdin), "utf-8")))
        patched.enter_context(mock.patch.object(sys, "excepthook", sys.excepthook))
        for console in (output.out, output.err):  # made with the width of the terminal that imported them
            patched.enter_context(mock.patch.object(console, "_width", None))
        patched.enter_context(mock.patch.object(LocalEncoder, "load", _loaded))
        patched.enter_context(mock.patch.object(LocalEncoder, "encode_documents", _encode_once))
        patched.enter_context(_databases_closed())
        patched.enter_context(redirect_stdout(out))
        patched.enter_context(redirect_stderr(err))
        patched.enter_context(_logging_restored())
        patched.callback(os.chdir, Path.cwd())
        os.chdir(folder)
        yield out, err


def _text(stream: TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, BytesIO)
    return buffer.getvalue().decode()


_load = LocalEncoder.load


@cache
def _loaded(name: str, **options: Any) -> LocalEncoder:
    """Each encoder is loaded once; a command of its own process pays a second for it.

    Its second session is made here: onnxruntime reads environment variables when it makes one, and the next command
    changes them, beside which no thread may read them.
    """
    encoder = _load(name, **options)
    encoder._sessions._beside_others(wait=True)
    return encoder


_encode = LocalEncoder.encode_documents
_vectors: dict[tuple[int, str], Vector] = {}


def _encode_once(encoder: LocalEncoder, texts: Sequence[str]) -> Sequence[Vector]:
    """The vectors of texts, each encoded once: many tests index the sample registry."""
    new = [text for text in dict.fromkeys(texts) if (id(encoder), text) not in _vectors]
    _vectors.update(((id(encoder), text), vector) for text, vector in zip(new, _encode(encoder, new), strict=True))
    return [_vectors[id(encoder), text] for text in texts]


@contextmanager
def _databases_closed() -> Iterator[None]:
    """Close what a command leaves to the end of its process."""
    opened: list[Database] = []
    connect = Database.connect

    def connect_and_note(database: Database) -> sqlite3.Connection:
        opened.append(database)
        return connect(database)

    try:
        with mock.patch.object(Database, "connect", connect_and_note):
            yield
    finally:
        for database in opened:
            database.close()


@contextmanager
def _logging_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, loggers = list(root.handlers), [root, *logging.root.manager.loggerDict.values()]
    levels = {logger: logger.level for logger in loggers if isinstance(logger, logging.Logger)}
    try:
        yield
    finally:
        for handler in set(root.handlers) - set(handlers):
            root.removeHandler(handler)
            handler.close()
        for logger, level in levels.items():
            logger.setLevel(level)


@dataclass(frozen=True)
class Service:
    """A running service."""

    url: str
    process: "subprocess.Popen[bytes]"
    home: Path

    @property
    def token(self) -> str:
        """That of whoever may read the service's folder; empty for a shared service."""
        file = self.home / OWN
        return file.read_text() if file.exists() else ""

    @property
    def signed(self) -> dict[str, str]:
        """The header with this token."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def request(
        self, path: str, body: Any = None, *, method: str | None = None, raw: bytes | None = None
    ) -> tuple[int, Any]:
        """The status, and the JSON or the text of the answer."""
        default = "GET" if body is None and raw is None else "POST"
        reply = ask(self, path, body, method=method or default, raw=raw)
        try:
            return reply.status, reply.json
        except ValueError:
            return reply.status, reply.text


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def ask(
    service: Service,
    path: str,
    body: Any = None,
    *,
    method: str = "GET",
    raw: bytes | None = None,
    **headers: str | None,
) -> Reply:
    """A request spelt exactly so; headers are named with _ for -, and one that is None is not sent."""
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    connection = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=30)
    sent = {**service.signed, **({"Content-Type": "application/json"} if data is not None else {})}
    sent |= {name.replace("_", "-").title(): value for name, value in headers.items()}
    try:
        connection.request(method, path, data, {k: v for k, v in sent.items() if v is not None})
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, names, response.read().decode())
    finally:
        connection.close()


@contextmanager
def serving(mats: Mats, *arguments: str, **more: Any) -> Iterator[Service]:
    """A service on a free port; it is interrupted at the end."""
    process = mats.start("serve", "--port", "0", *arguments, **more)
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline().decode()
        assert "ready on http" in line, line + process.stderr.read().decode()
        yield Service(line.split("ready on ")[1].split(" ")[0], process, mats.folder / mats.home)
        process.send_signal(signal.SIGINT)
        process.wait(10)
    finally:
        process.kill()
        process.communicate()


def sql(file: Path, statement: str) -> list[tuple[Any, ...]]:
    """The rows of a statement on a file of SQLite; what it changes is committed."""
    with closing(sqlite3.connect(file)) as connection, connection:
        return connection.execute(statement).fetchall()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(holds: Callable[[], bool], *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"still not so after {seconds} s"
        time.sleep(0.05)


def make_tokens(home: Path, **secrets: str) -> None:
    """Make tokens with these secrets, each named by its scope."""
    made = [asdict(Token(scope, TokenScope(scope), digest(secret), "2026-01-01")) for scope, secret in secrets.items()]
    (home / TOKENS).write_text(json.dumps(made))
