"""Results files: one per experiment or benchmark, each with its provenance."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mats.evaluation.measures import RESAMPLES, SEED
from mats.resources import REPOSITORY

RESULTS = REPOSITORY / "experiments" / "results"
_LIBRARIES = ("numpy", "onnxruntime", "pydantic", "rank-bm25", "scipy", "tokenizers")

Json = Mapping[str, Any]


def write_results(name: str, results: dict[str, Any], folder: Path | None = None) -> Path:
    """Write results with their provenance, by default to RESULTS; the path of the file.

    Raises OSError: it cannot be written.
    """
    path = (folder or RESULTS) / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**results, "provenance": provenance()}, indent=1) + "\n", encoding="utf-8")
    return path


def provenance() -> dict[str, Any]:
    """Commit, machine and libraries of this run."""
    memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    return {
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "changed_files": len(_git("status", "--porcelain", "--untracked-files=no").splitlines()),
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "memory_gb": memory, "system": platform.system()},
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in _LIBRARIES},
        "bootstrap": {"resamples": RESAMPLES, "seed": SEED},
    }


def _git(*arguments: str) -> str:
    """The output of git in the clone; empty in an installed package, or without git."""
    if not (REPOSITORY / ".git").exists():
        return ""
    try:
        ran = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)  # noqa: S603, S607
    except OSError:
        return ""
    return ran.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
