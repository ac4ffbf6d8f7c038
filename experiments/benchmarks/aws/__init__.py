"""Benchmarks of what runs in AWS, over a real OpenSearch node. `python -m experiments.benchmarks.aws --help`."""
