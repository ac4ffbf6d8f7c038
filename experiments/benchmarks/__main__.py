"""Run benchmarks by name: print their results as JSON and write them to `experiments/results/bench-NAME.json`."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from experiments.attacks.benchmark import attacks
from experiments.benchmarks import mcp, memory, pipeline, reranker, size
from experiments.benchmarks.console import console
from experiments.benchmarks.importing import importing
from experiments.benchmarks.load import load
from experiments.benchmarks.openapi import openapi
from experiments.benchmarks.processes import interrupt_on_sigterm
from mats.evaluation.results import write_results
from mats.settings import Settings

Benchmark: TypeAlias = Callable[[Path, Settings], dict[str, Any]]
"""From the folder of judged data sets and the settings to results."""

BENCHMARKS: Mapping[str, Benchmark] = {
    "latency": pipeline.latency,
    "scale": size.scale,
    "import": pipeline.import_,
    "sample": pipeline.sample_queries,
    "answer": pipeline.answer,
    "rerank": reranker.rerank,
    "mcp": mcp.mcp,
    "memory": memory.memory,
    "attacks": attacks,
    "load": load,
    "console": console,
    "openapi": openapi,
    "importing": importing,
}


def main() -> None:
    interrupt_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of judged data sets")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all by default")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - BENCHMARKS.keys()
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    for name in arguments.names or BENCHMARKS:
        began = time.monotonic()
        results = BENCHMARKS[name](arguments.data, Settings.from_env(os.environ))
        path = write_results(f"bench-{name}", {**results, "seconds": round(time.monotonic() - began, 1)})
        sys.stdout.write(json.dumps(results) + "\n")
        sys.stderr.write(f"{name}: results written to {path}\n")


if __name__ == "__main__":
    main()
