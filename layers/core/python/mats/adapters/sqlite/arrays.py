"""Arrays by row number, with room for rows to come, and the memory that building them leaves behind."""

import ctypes
import sys
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]
"""Row numbers."""

FIRST_ROOM = 1_024
_SAMPLE = 32
"""Values of a sample, as a multiple of those that are wanted."""

A = TypeVar("A", Floats, Mask, npt.NDArray[np.int32])


def with_room(values: A, row: int) -> A:
    """The same array, at least doubled if the row is beyond its end."""
    if row < len(values):
        return values
    grown = np.zeros((max(row + 1, 2 * len(values)), *values.shape[1:]), values.dtype)
    grown[: len(values)] = values
    return grown


def best_places(values: npt.NDArray[np.floating], depth: int, *, above: float = -np.inf) -> Rows:
    """Where the `depth` largest values above this one are, and those equal to the last of them; in no order."""
    places = np.flatnonzero(values >= max(_lower_bound(values, depth), np.nextafter(values.dtype.type(above), np.inf)))
    if len(places) <= depth:
        return places
    found = values[places]
    return np.asarray(places[found >= np.partition(found, -depth)[-depth]])


def _lower_bound(values: npt.NDArray[np.floating], depth: int) -> float:
    """At least `depth` values are not less: so many are not in a sample, if they are many."""
    sample = values[:: max(1, len(values) // max(1, _SAMPLE * depth))]
    return -np.inf if len(sample) == len(values) else float(np.partition(sample, -depth)[-depth])


def release_freed() -> None:
    """Return memory that has been freed to the operating system, where the C library would keep it."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim:
            trim(0)
