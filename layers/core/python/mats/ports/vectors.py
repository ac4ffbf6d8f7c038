"""Vectors of texts."""

from array import array
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Vector: TypeAlias = array[float]
else:
    Vector = array  # `array[float]` needs Python 3.12
"""float32 components of Euclidean length 1."""
