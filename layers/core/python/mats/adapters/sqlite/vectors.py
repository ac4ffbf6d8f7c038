"""Unit vectors in memory by row number, and the nearest ones to a query: exact; where they are many, in two passes.

The first pass sees the leading components of vectors rotated to their principal axes only; the second one computes the
exact cosine of the best rows of the first. docs/decisions/0059.
"""

import math
from collections.abc import Sequence

import numpy as np

from mats.adapters.sqlite.arrays import Floats, Mask, Rows, with_room

EXACT_UP_TO = 20_000
"""Rows that are searched in one pass, which takes no longer than two."""
_LEADING = 128
"""Components of the first pass."""
_GUESSES = 8
"""Rows of the second pass, as a multiple of the square root of the number of rows searched."""
_BLOCK = 16_384
"""Rows from which axes are computed, and rows rotated at a time."""


class Vectors:
    """Rows of one width, each with a vector or without. Not safe to share between threads without a lock."""

    def __init__(self, room: int, width: int, *, exact_up_to: int = EXACT_UP_TO) -> None:
        self._vectors: Floats = np.zeros((room, width), np.float32)
        self._present: Mask = np.zeros(room, np.bool_)
        self._exact_up_to = exact_up_to
        self._axes: Floats = np.zeros((width, 0), np.float32)
        """Columns: the leading principal axes of the vectors that there were when they were computed."""
        self._fitted = 0
        """Number of those vectors."""
        self._leading: Floats = np.zeros((room, 0), np.float32)
        self._stale: set[int] = set()
        """Rows whose leading components are to be computed."""

    @property
    def width(self) -> int:
        """Components of each vector."""
        return int(self._vectors.shape[1])

    def __setitem__(self, row: int, vector: Floats) -> None:
        self._vectors, self._present = with_room(self._vectors, row), with_room(self._present, row)
        self._vectors[row], self._present[row] = vector, True
        if self._fitted:
            self._stale.add(row)

    def __delitem__(self, row: int) -> None:
        if row < len(self._present):
            self._present[row] = False

    def copy(self, size: int) -> "Vectors":
        """An independent copy of the first `size` rows, with room for one more."""
        held = min(size, len(self._vectors))
        other = Vectors(held + 1, self.width, exact_up_to=self._exact_up_to)
        other._vectors[:held], other._present[:held] = self._vectors[:held], self._present[:held]
        other._axes, other._fitted, other._stale = self._axes, self._fitted, set(self._stale)
        leading = self._leading[:held]
        other._leading = np.zeros((held + 1, leading.shape[1]), np.float32)
        other._leading[: len(leading)] = leading
        return other

    def cosines(self, vector: Floats, rows: Sequence[int]) -> dict[int, float]:
        """The cosine of each of these rows that has a vector."""
        known = [row for row in rows if row < len(self._present) and self._present[row]]
        return {row: float(np.clip(self._vectors[row] @ vector, -1.0, 1.0)) for row in known}

    def nearest(self, vector: Floats, mask: Mask, depth: int) -> tuple[Rows, Floats]:
        """The exact cosine of rows of the mask, in no order: of all, or of those that the first pass finds best."""
        size = min(len(mask), len(self._present))
        rows = np.flatnonzero(mask[:size] & self._present[:size])
        if len(rows) > self._exact_up_to:
            self.prepare()
            guesses = (self._leading[:size] @ (vector @ self._axes))[rows]
            wanted = min(max(math.ceil(_GUESSES * math.sqrt(len(rows))), 2 * depth), len(rows))
            rows = rows[np.argpartition(guesses, -wanted)[-wanted:]]
        elif 2 * len(rows) > size:  # reading all of them takes less than picking most of them
            return rows, np.clip(self._vectors[:size] @ vector, -1.0, 1.0)[rows]
        return rows, np.clip(self._vectors[rows] @ vector, -1.0, 1.0)

    def prepare(self) -> None:
        """Bring the leading components up to date, if they are needed; the axes change when the rows have doubled."""
        count = int(np.count_nonzero(self._present))
        if count <= self._exact_up_to:
            return
        if count < 2 * self._fitted:
            rows = np.array(sorted(self._stale), np.intp)
        else:
            rows = np.flatnonzero(self._present)
            sample = self._vectors[rows[:: -(-count // _BLOCK)]]
            self._axes, self._fitted = _principal_axes(sample), count
            self._leading = np.zeros((len(self._vectors), self._axes.shape[1]), np.float32)
        self._stale.clear()
        self._leading = with_room(self._leading, len(self._vectors) - 1)
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            self._leading[block] = self._vectors[block] @ self._axes


def _principal_axes(sample: Floats) -> Floats:
    """The directions in which the sample's squared products are largest on average, as columns."""
    _, axes = np.linalg.eigh((sample.T @ sample).astype(np.float64))  # in ascending order
    return np.ascontiguousarray(axes[:, : -_LEADING - 1 : -1], np.float32)
