"""A server in a Java process of ours, for as long as it is entered."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.aws import maven

READY = re.compile(rb"^ready (\d+)$", re.MULTILINE)
START_S = 180.0
STOP_S = 10.0


class ServerFailed(Exception):
    """The server did not come up; the message ends with the tail of its log."""


class JavaServer:
    """Starts when entered, on loopback and a port of its own choice unless `port` says which.

    Its launcher prints "ready PORT" and ends when its standard input does, so it never outlives this process,
    not even one that was killed. What it keeps on disk is under `folder`, and goes when it stops.
    """

    name: str
    main: str
    release = 17  # Of the virtual machine, at least

    def __init__(self, *, port: int = 0, java_options: Sequence[str] = ("-Xmx512m",)) -> None:
        self._port, self._java_options = port, java_options

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @classmethod
    def missing(cls) -> str | None:
        """The reason why this machine cannot run it."""
        if maven.virtual_machine(cls.release) is None:
            return f"Java {cls.release} (make test-servers installs one)"
        return maven.missing(cls.name)

    def java(self) -> str:
        return maven.virtual_machine(self.release) or "java"

    def classpath(self, home: Path) -> list[str]:
        return [str(home), f"{home}/lib/*"]

    def arguments(self, home: Path, folder: Path) -> list[str]:
        """The launcher's arguments before the port."""
        return []

    def options(self) -> list[str]:
        """The launcher's arguments after the port."""
        return []

    def __enter__(self) -> Self:
        home = maven.assembled(self.name)
        self.folder = Path(tempfile.mkdtemp(prefix=f"mats-{self.name}-"))
        command = [
            self.java(),
            *self._java_options, "-XX:-UsePerfData", f"-Djava.io.tmpdir={self.folder}",
            f"-Djava.library.path={home}/lib", "-cp", os.pathsep.join(self.classpath(home)), self.main,
            *self.arguments(home, self.folder), str(self._port), *self.options(),
        ]  # fmt: skip
        self.log = self.folder / "log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            self._port = self._ready()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _ready(self) -> int:
        give_up = time.monotonic() + START_S
        while not (said := READY.search(self.log.read_bytes())):
            if self._process.poll() is not None or time.monotonic() > give_up:
                tail = self.log.read_text(errors="replace")[-4000:]
                raise ServerFailed(f"{self.name} did not start (exit code {self._process.returncode}):\n{tail}")
            time.sleep(0.05)
        return int(said[1])

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
        shutil.rmtree(self.folder, ignore_errors=True)
