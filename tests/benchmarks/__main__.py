"""Run all benchmarks of one machine: those of `mats.evaluation.benchmarks`, the service under load, and the console."""

from mats.evaluation.benchmarks.__main__ import BENCHMARKS, main
from tests.benchmarks.console import console
from tests.benchmarks.importing import importing
from tests.benchmarks.load import load
from tests.benchmarks.million import million
from tests.benchmarks.openapi import openapi
from tests.benchmarks.processes import interrupt_on_sigterm

interrupt_on_sigterm()
main({**BENCHMARKS, "load": load, "console": console, "openapi": openapi, "importing": importing, "million": million})
