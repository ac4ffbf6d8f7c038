"""Results files: one per experiment or benchmark, each with its provenance."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mats.domain.errors import Fault, Invalid
from mats.evaluation.reporting.provenance import provenance
from mats.resources import REPOSITORY

EXPERIMENTS = (
    "main", "scale", "decomposition", "enrichment", "signals", "first-stage", "field-weights", "efficiency", "kinds",
    "abstention",
)  # fmt: skip
"""In the order of the report."""
RESULTS = REPOSITORY / "evaluation" / "results"
_PAPER = Path(__file__).with_name("paper.json")

Json = Mapping[str, Any]


class ResultsInvalid(Invalid):
    """A results file has another shape than its experiment writes."""


def load_results(folder: Path) -> dict[str, Json]:
    """The results by experiment, without those that have no file.

    Raises:
        ResultsInvalid: a file cannot be read.
    """
    results = {}
    for name in EXPERIMENTS:
        path = folder / f"experiment-{name}.json"
        if path.exists():
            results[name] = _object(path)
    return results


def write_results(name: str, results: dict[str, Any]) -> Path:
    """Write results with their provenance to the folder of results; the path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({**results, "provenance": provenance()}, indent=1) + "\n", encoding="utf-8")
    return path


def _object(path: Path) -> Json:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsInvalid([Fault(str(path), f"cannot be read: {error}")]) from error
    if not isinstance(value, dict):
        raise ResultsInvalid([Fault(str(path), f"must hold a JSON object, not {type(value).__name__}")])
    return value


def paper() -> Json:
    """The numbers of the paper, by table."""
    return _object(_PAPER)


def not_run_reason(value: object) -> str:
    """The reason why a system was not run; empty if it was."""
    return str(value["not_run"]) if isinstance(value, Mapping) and "not_run" in value else ""


def measured_only(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that were measured."""
    return {name: value for name, value in values.items() if not not_run_reason(value)}


def not_run_notes(values: Iterable[tuple[str, object]]) -> Iterator[str]:
    """One sentence per reason why systems were not run, with their names."""
    names_by_reason: dict[str, dict[str, None]] = {}
    for name, value in values:
        if why := not_run_reason(value):
            names_by_reason.setdefault(why, {})[name] = None
    return (f"Not run ({', '.join(names)}): {why}" for why, names in names_by_reason.items())
