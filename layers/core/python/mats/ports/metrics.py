"""Metrics for operators."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol


class Measure(NamedTuple):
    """A number and its unit."""

    value: float
    unit: Literal["Count", "Milliseconds", "None"]


class Metrics(Protocol):
    """Emits time series. Never fails."""

    def __call__(self, measures: Mapping[str, Measure]) -> None:
        """Emit these at one time."""
        ...
