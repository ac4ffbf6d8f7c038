"""`mats` in a process of its own, forked from one that has imported everything: it starts at once."""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any

from mats.local.cli import output
from mats.local.cli.main import app

_FORKS = multiprocessing.get_context("forkserver")
_LATE = "anyio._backends._asyncio mats.adapters.encoder.local mats.adapters.sqlite.index"
"""What commands import when they need it."""
_FORKS.set_forkserver_preload([__name__, *_LATE.split(), "mats.local.service", "onnxruntime", "uvicorn"])


class Forked:
    """What tests use of `subprocess.Popen`; standard output and error are pipes, standard input is one or empty."""

    def __init__(self, *arguments: str, env: Mapping[str, str], cwd: Path, stdin: int | None = None) -> None:
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        child_in = os.open(os.devnull, os.O_RDONLY)
        if stdin == subprocess.PIPE:
            os.close(child_in)
            child_in, ours = os.pipe()
            self.stdin = os.fdopen(ours, "wb")
        (out, child_out), (err, child_err) = os.pipe(), os.pipe()
        self.stdout, self.stderr = os.fdopen(out, "rb"), os.fdopen(err, "rb")
        streams = (child_in, child_out, child_err)
        mask = os.umask(0o022)
        os.umask(mask)
        self._process = _FORKS.Process(
            target=_run, args=(arguments, dict(env), cwd, mask, _Streams(streams)), daemon=True
        )
        self._process.start()
        for stream in streams:
            os.close(stream)

    @property
    def pid(self) -> int:
        assert self._process.pid
        return self._process.pid

    def poll(self) -> int | None:
        self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("mats", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it may end between both lines
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, stdin: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        with self.stdout, self.stderr, ThreadPoolExecutor(2) as readers:
            out, err = (readers.submit(stream.read) for stream in (self.stdout, self.stderr))
            if self.stdin:
                with suppress(BrokenPipeError), self.stdin:
                    self.stdin.write(stdin)
            try:
                self.wait(timeout)
            finally:
                self.kill()
            return out.result(), err.result()


class _Streams:
    """Standard input, output and error, on their way into the process."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = numbers

    def __reduce__(self) -> Any:
        return _Streams._taken, tuple(map(DupFd, self.numbers))

    @staticmethod
    def _taken(*sent: Any) -> "_Streams":
        return _Streams([one.detach() for one in sent])


def _run(arguments: Sequence[str], environment: Mapping[str, str], folder: Path, mask: int, streams: _Streams) -> None:
    """Be the command: what a new interpreter would have, and an end like an interpreter's."""
    for number, stream in enumerate(streams.numbers):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        for number, mode in enumerate("rww")
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.umask(mask)
    sys.argv = ["mats", *arguments]
    for console in (output.out, output.err):  # made with the width of the terminal that imported them
        console._width = int(environment["COLUMNS"])
    try:
        app()
    finally:
        atexit._run_exitfuncs()
