"""What was measured, as it is on disk: one file for each experiment, any of which may be missing."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mats.domain.errors import Fault, Invalid

EXPERIMENTS = (
    "main", "scale", "decomposition", "enrichment", "signals", "first-stage", "field-weights", "efficiency", "kinds",
    "abstention",
)  # fmt: skip
"""In the order of the report."""
_PAPER = Path(__file__).with_name("paper.json")

Json = Mapping[str, Any]


class ResultsInvalid(Invalid):
    """A results file is not what an experiment writes."""


def read(folder: Path) -> dict[str, Json]:
    """The results there are, by experiment; what was not measured is left out.

    Raises:
        ResultsInvalid: a file is there and cannot be read.
    """
    found = {}
    for name in EXPERIMENTS:
        path = folder / f"experiment-{name}.json"
        if path.exists():
            found[name] = _object(path)
    return found


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


def reason(value: object) -> str:
    """Why something was not run; empty if it was."""
    return str(value["not_run"]) if isinstance(value, Mapping) and "not_run" in value else ""


def ran(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that were run."""
    return {name: value for name, value in values.items() if not reason(value)}


def reasons(values: Iterable[tuple[str, object]]) -> Iterator[str]:
    """One sentence for each reason why something was not run, with what it kept from running."""
    kept: dict[str, dict[str, None]] = {}
    for name, value in values:
        if why := reason(value):
            kept.setdefault(why, {})[name] = None
    return (f"Not run ({', '.join(names)}): {why}" for why, names in kept.items())
