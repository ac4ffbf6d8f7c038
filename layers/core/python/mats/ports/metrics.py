"""What operators watch."""

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol


class Measure(NamedTuple):
    """One number and what it counts."""

    value: float
    unit: Literal["Count", "Milliseconds", "None"]


class Metrics(Protocol):
    """Where numbers go that are drawn over time. Never fails."""

    def __call__(self, measures: Mapping[str, Measure]) -> None:
        """Note these together."""
        ...
