"""`python -m mats.evaluation.benchmarks`."""

from mats.evaluation.benchmarks.runner import main

main()
