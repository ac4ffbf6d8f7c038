"""Benchmarks of latency, throughput, memory and tokens. `python -m experiments.benchmarks --help`."""
