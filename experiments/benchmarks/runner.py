"""The command line, the child processes and the percentiles of benchmarks."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from experiments.fresh import write_results
from mats.settings import Settings

Benchmark: TypeAlias = Callable[[Path, Settings], dict[str, Any]]
"""From the folder of judged data sets and the settings to results."""


def run_benchmarks(prefix: str, benchmarks: Mapping[str, Benchmark], description: str | None) -> None:
    """Run the benchmarks that the command line names and write their results; all by default.

    SIGTERM ends it as Ctrl-C does, so that child processes end with it.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, required=True, help="folder of judged data sets")
    parser.add_argument("--results", type=Path, help="folder of the results; default: `results` beside the data")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(benchmarks)}; all by default")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - benchmarks.keys():
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(benchmarks)}")
    for name in arguments.names or benchmarks:
        began = time.monotonic()
        results = benchmarks[name](arguments.data, Settings.from_env(os.environ))
        results["seconds"] = round(time.monotonic() - began, 1)
        path = write_results(f"{prefix}-{name}", results, arguments.results or arguments.data / "results")
        sys.stdout.write(json.dumps(results) + "\n")
        sys.stderr.write(f"{name}: results written to {path}\n")


@contextmanager
def module_process(module: str, *arguments: str, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """The first line that a Python module prints as a child process, which is terminated at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(timeout=30)
        if process.stdout:
            process.stdout.close()


@contextmanager
def service(env: Mapping[str, str]) -> Iterator[str]:
    """The address of a new `mats serve` with these settings."""
    with module_process("mats.local.cli", "serve", "--port", "0", env=env) as greeting:
        found = re.search(r"http://[\d.:]+", greeting)
        if found is None:
            raise SystemExit(f"the service did not start: {greeting}")
        yield found.group()


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """`p50`, `p95`, `p99` and `max`, to a tenth."""
    ranks = {"p50": 50, "p95": 95, "p99": 99, "max": 100}
    return {name: round(float(np.percentile(values, rank)), 1) for name, rank in ranks.items()}
