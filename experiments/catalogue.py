"""The experiments that are in `experiments/studies`, by name, in the order of the report."""

import json
import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from pydantic import TypeAdapter

from experiments import studies
from experiments.report.cells import Section
from experiments.studies.context import Experiment

ARCHIVE = Path(studies.__file__).with_name("archive")
"""A file for each decided experiment: its place, its finding, and its section as in report.json."""


def _experiments() -> Iterator[Experiment]:
    for module in pkgutil.iter_modules(studies.__path__):
        yield from getattr(import_module(f"{studies.__name__}.{module.name}"), "EXPERIMENTS", ())
    yield from map(_decided, ARCHIVE.glob("*.json"))


def _decided(path: Path) -> Experiment:
    value = json.loads(path.read_text("utf-8"))
    section, finding = TypeAdapter(Section).validate_python(value), value.get("finding", "")
    return Experiment(name=path.stem, place=value["place"], section=lambda *_: section, finding=lambda _: finding)


EXPERIMENTS: Mapping[str, Experiment] = {
    one.name: one for one in sorted(_experiments(), key=lambda experiment: experiment.place)
}
RUNNABLE = {name: one.run for name, one in EXPERIMENTS.items() if one.run}  # Those that are not decided
