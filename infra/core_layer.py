"""The contents of the core layer: our own code but what no function imports."""

from infra.vendor import ROOT

SOURCE = ROOT / "layers" / "core"
LEFT_OUT = (
    "adapters/encoder",
    "adapters/prometheus.py",
    "adapters/sqlite/backup.py",
    "adapters/sqlite/queue.py",
    "adapters/sqlite/sources.py",
    "bootstrap/local.py",
    "client",
    "domain/learning/use.py",
    "domain/protocols/addresses.py",
    "evaluation",
    "local",
    "resources.py",
)
"""Paths below `mats`; tests/architecture/test_layer_contents.py holds this list to what the functions import."""

EXCLUDE = ("**/__pycache__", *(f"python/mats/{path}" for path in LEFT_OUT))  # The same as patterns below `SOURCE`
