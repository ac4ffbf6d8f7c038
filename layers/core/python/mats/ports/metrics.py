"""Metrics for operators."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol


class Measure(NamedTuple):
    """A number and its unit."""

    value: float
    unit: Literal["Count", "Milliseconds", "None"]


NO_DIMENSIONS: Mapping[str, str] = MappingProxyType({})


class Metrics(Protocol):
    """Emits time series. Never fails."""

    def __call__(self, measures: Mapping[str, Measure], dimensions: Mapping[str, str] = NO_DIMENSIONS) -> None:
        """Emit these at one time, under dimensions in addition to the service's name."""
        ...
