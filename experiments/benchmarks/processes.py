"""Child processes of a benchmark."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


def interrupt_on_sigterm() -> None:
    """Treat SIGTERM as Ctrl-C, so that child processes end with this one."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@contextmanager
def module_process(
    module: str, *arguments: str, env: Mapping[str, str]
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A Python module as a child process, and the first line it prints; terminated at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], env={**os.environ, **env}, stdout=subprocess.PIPE, text=True
    )
    try:
        if process.stdout is None:
            raise SystemExit(f"{module} has no output")
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(timeout=30)
        if process.stdout:
            process.stdout.close()
