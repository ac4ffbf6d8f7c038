"""Benchmarks of latency, throughput, memory and tokens. `python -m mats.evaluation.benchmarks --help`."""
