"""The contents of the core layer: our own code but what no function imports."""

import shutil
from pathlib import Path

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


def copy_core_layer(folder: Path) -> Path:
    """Copy the contents of the layer into a new folder, and return the one that Lambda puts on the path."""
    left_out = {str(SOURCE / "python" / "mats" / path) for path in LEFT_OUT}

    def ignore(parent: str, names: list[str]) -> list[str]:
        return [name for name in names if name == "__pycache__" or f"{parent}/{name}" in left_out]

    return Path(shutil.copytree(SOURCE, folder, ignore=ignore)) / "python"
