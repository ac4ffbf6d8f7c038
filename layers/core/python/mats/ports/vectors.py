"""What an encoder makes and an index compares."""

from array import array
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Vector: TypeAlias = array[float]
else:
    Vector = array  # can be subscribed from Python 3.12 on only
"""float32 components of Euclidean length 1."""
