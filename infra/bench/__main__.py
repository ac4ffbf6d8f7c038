"""Run all benchmarks of one machine: those of `mats.evaluation.benchmarks`, the service under load, and the console."""

from infra.bench.console import console
from infra.bench.load import load
from mats.evaluation.benchmarks.runner import BENCHMARKS, main

main({**BENCHMARKS, "load": load, "console": console})
