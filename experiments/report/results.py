"""Reading of results: the paper's own numbers, and systems that were not run."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mats.domain.errors import Fault, Invalid
from mats.evaluation.results import Json


class ResultsInvalid(Invalid):
    """A results file has another shape than its experiment writes."""


def read_results(path: Path) -> Json:
    """The object in a file of JSON.

    Raises:
        ResultsInvalid: there is none, or the file cannot be read.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsInvalid([Fault(str(path), f"cannot be read: {error}")]) from error
    if not isinstance(value, dict):
        raise ResultsInvalid([Fault(str(path), f"must hold a JSON object, not {type(value).__name__}")])
    return value


def paper() -> Json:
    return read_results(Path(__file__).with_name("paper.json"))


def not_run_reason(value: object) -> str:
    """The reason why a system was not run; empty if it was."""
    return str(value["not_run"]) if isinstance(value, Mapping) and "not_run" in value else ""


def if_run(value: Json) -> Json:
    """A part of results; empty if it was not run."""
    return {} if not_run_reason(value) else value


def measured_only(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if not not_run_reason(value)}


def not_run_notes(values: Iterable[tuple[str, object]]) -> Iterator[str]:
    """One sentence per reason why systems were not run, with their names."""
    names_by_reason: dict[str, dict[str, None]] = {}
    for name, value in values:
        if why := not_run_reason(value):
            names_by_reason.setdefault(why, {})[name] = None
    return (f"Not run ({', '.join(names)}): {why}" for why, names in names_by_reason.items())
