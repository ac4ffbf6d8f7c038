"""Experiments: the paper's tables, baselines, benchmarks, attacks, data makers and the report.

They stand beside the package `mats`, which never imports them. `python -m experiments --help`.
"""
