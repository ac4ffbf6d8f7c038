"""Arrays by row number, with room for rows to come, and the best places of one."""

import ctypes
import math
import sys
from copy import copy
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]  # Row numbers

FIRST_ROOM = 1_024
_SAMPLE = 4_096  # Values that a bound is guessed from
_MARGIN = 4  # Of a guess, in standard deviations of the number of values in the sample

A = TypeVar("A", Floats, Mask, npt.NDArray[np.int32], npt.NDArray[np.int8])


class Copied:
    """`copy` of it copies each attribute, so that both change apart; what lists and dictionaries hold is shared."""

    def __copy__(self) -> Self:
        other = object.__new__(type(self))
        vars(other).update({name: copy(held) for name, held in vars(self).items()})
        return other


def with_room(values: A, row: int) -> A:
    """The same array, at least doubled if the row is beyond its end."""
    if row < len(values):
        return values
    grown = np.zeros((max(row + 1, 2 * len(values)), *values.shape[1:]), values.dtype)
    grown[: len(values)] = values
    return grown


def best_places(
    values: npt.NDArray[np.floating], depth: int, *, above: float = -np.inf, mask: Mask | None = None
) -> Rows:
    """Where the `depth` largest values above this one are, and those equal to the last of them; ascending.

    With a mask, only places of the mask count.
    """
    places = _places_from(_guessed_bound(values, depth, mask), values, above, mask)
    if len(places) < depth:
        places = _places_from(-np.inf, values, above, mask)
    if len(places) <= depth:
        return places
    found = values[places]
    return np.asarray(places[found >= np.partition(found, -depth)[-depth]])


def _places_from(least: float, values: npt.NDArray[np.floating], above: float, mask: Mask | None) -> Rows:
    """Where values are at least one number and above another one."""
    places = np.flatnonzero(values >= least if least > above else values > above)
    return places if mask is None else places[mask[places]]


def _guessed_bound(values: npt.NDArray[np.floating], depth: int, mask: Mask | None) -> float:
    """A bound that some more than `depth` values are likely to reach, from a sample."""
    step = max(1, len(values) // _SAMPLE)
    sample = values[::step] if mask is None else values[::step][mask[::step]]
    share = depth / step
    rank = math.ceil(share + _MARGIN * math.sqrt(share) + _MARGIN)
    return -np.inf if step == 1 or rank > len(sample) else float(np.partition(sample, -rank)[-rank])


def release_freed() -> None:
    """Return memory that has been freed to the operating system, where the C library would keep it."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim:
            trim(0)
