"""Benchmarks that need servers or a browser. `python -m tests.benchmarks` runs them after those of mats itself."""
