"""Benchmarks that need servers or a browser. `python -m infra.bench` runs them after those of mats itself."""
