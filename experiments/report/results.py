"""Reading of results: the paper's own numbers, and systems that were not run."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mats.evaluation.results import RESULTS, Json


def load_results(name: str) -> Json:
    """The results in a file of RESULTS."""
    return _load(RESULTS / f"{name}.json")


def paper() -> Json:
    return _load(Path(__file__).with_name("paper.json"))


def _load(path: Path) -> Json:
    results: Json = json.loads(path.read_text(encoding="utf-8"))
    return results


def not_run_reason(value: object) -> str:
    """The reason why a system was not run; empty if it was."""
    return str(value["not_run"]) if isinstance(value, Mapping) and "not_run" in value else ""


def measured_only(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not not_run_reason(value)}
