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

A = TypeVar("A", Floats, Mask, npt.NDArray[np.int32])


def with_room(values: A, row: int) -> A:
    """The same array, at least doubled if the row is beyond its end."""
    if row < len(values):
        return values
    grown = np.zeros((max(row + 1, 2 * len(values)), *values.shape[1:]), values.dtype)
    grown[: len(values)] = values
    return grown


def release_freed() -> None:
    """Return memory that has been freed to the operating system, where the C library would keep it."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim:
            trim(0)
