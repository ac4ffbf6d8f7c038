"""The report of an import: the location and outcome of each value."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mats.domain.capability import Id
from mats.domain.errors import Fault
from mats.domain.placement import Placed


class Location(NamedTuple):
    """A line of a file (counted from 1), or a path into a document."""

    file: str
    line: int = 0
    where: str = ""

    def __str__(self) -> str:
        return (f"line {self.line}" if self.line else self.where or "the whole") + f" of {self.file}"


class Rejection(NamedTuple):
    """A value that was not registered, with all its faults."""

    place: Location
    faults: Sequence[Fault]


class Remark(NamedTuple):
    """Notes on a value that was registered or skipped."""

    place: Location
    notes: Sequence[Fault]


@dataclass(slots=True)
class Report:
    """The outcome of an import."""

    rows: int = 0
    """Registrations and rejections, without unreadable files and skipped values."""
    placed: Counter[Placed] = field(default_factory=Counter)
    rejected: list[Rejection] = field(default_factory=list)
    noted: list[Remark] = field(default_factory=list)
    passed_over: list[tuple[str, str]] = field(default_factory=list)
    """Files of a folder that are of no known format, and the reason."""
    registered: list[tuple[Id, Placed, Location]] = field(default_factory=list)
    """Registrations of documents; those of lines are counted only."""
