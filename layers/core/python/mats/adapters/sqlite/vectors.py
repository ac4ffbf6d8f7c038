"""Unit vectors in memory by row number, and the nearest ones to a query: exact; where they are many, in two passes.

The second pass computes the exact cosine of the best rows of the first one. docs/decisions/0059.
"""

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mats.adapters.sqlite.arrays import (
    BLOCK,
    Copied,
    Floats,
    Mask,
    Rows,
    best_places,
    in_halves,
    release_freed,
    with_room,
)

if TYPE_CHECKING:
    from mats.adapters.sqlite.first_pass import FirstPass

EXACT_UP_TO = 20_000  # Rows that are searched in one pass, which takes no longer than two
_GUESSES = 16  # Rows of the second pass, as a multiple of the square root of the number of rows searched
_PART = 256  # Rows that are multiplied together, after copying within the cache of a core if they are picked
_LEAST_PARTS = 8  # Parts, from which on two cores multiply
_RELEASED = 4  # Blocks of the first pass, after which the memory that computing them took is returned
_SAMPLE = 16_384  # Rows from which axes are computed
_STALE = 1_024  # Rows that have changed, up to which each is in every second pass


class Vectors(Copied):
    """Rows of one width, each with a vector or without. Not safe to share between threads without a lock."""

    def __init__(self, room: int, width: int, *, exact_up_to: int = EXACT_UP_TO) -> None:
        self._vectors: Floats = np.zeros((room, width), np.float32)
        self._present: Mask = np.zeros(room, np.bool_)
        self._exact_up_to = exact_up_to
        self._first: FirstPass | None = None
        self._fitted = 0  # Number of the vectors that the axes of the first pass were computed from
        self._stale: set[int] = set()  # Rows that have changed since the first pass saw them

    @property
    def width(self) -> int:
        return int(self._vectors.shape[1])

    def put(self, rows: Rows, vectors: Floats) -> None:
        last = int(rows.max())
        self._vectors, self._present = with_room(self._vectors, last), with_room(self._present, last)
        self._vectors[rows], self._present[rows] = vectors, True
        if self._fitted:
            self._stale.update(rows.tolist())

    def drop(self, rows: Rows) -> None:
        self._present[rows[rows < len(self._present)]] = False

    def cosines(self, vector: Floats, rows: Collection[int]) -> dict[int, float]:
        """The cosine of each of these rows that has a vector."""
        known = [row for row in rows if row < len(self._present) and self._present[row]]
        return {row: float(np.clip(self._vectors[row] @ vector, -1.0, 1.0)) for row in known}

    def nearest(self, vector: Floats, mask: Mask, depth: int) -> tuple[Rows, Floats]:
        """The exact cosine of rows of the mask, in no order: of all, or of those that the first pass finds best."""
        size = min(len(mask), len(self._present))
        wanted = mask[:size] & self._present[:size]
        count = int(np.count_nonzero(wanted))
        if count > self._exact_up_to:
            rows = self._guess(vector, wanted, max(math.ceil(_GUESSES * math.sqrt(count)), 2 * depth))
        else:
            rows = np.flatnonzero(wanted)
            if 2 * count > size:  # reading all of them takes less than picking most of them
                return rows, self._products_of_first(vector, size)[rows]
        return rows, self._products(vector, rows)

    def _products_of_first(self, vector: Floats, size: int) -> Floats:
        """The cosine of each of the first rows."""
        products = np.empty(size, np.float32)

        def multiply(first: int, last: int) -> None:
            part = slice(first * _PART, last * _PART)
            np.matmul(self._vectors[:size][part], vector, out=products[part])

        in_halves(multiply, -(-size // _PART), least=_LEAST_PARTS)
        return np.clip(products, -1.0, 1.0, out=products)

    def _products(self, vector: Floats, rows: Rows) -> Floats:
        """The cosine of each of these rows."""
        products = np.empty(len(rows), np.float32)

        def multiply(first: int, last: int) -> None:
            room = np.empty((_PART, self.width), np.float32)
            for start in range(first * _PART, min(last * _PART, len(rows)), _PART):
                picked = rows[start : start + _PART]
                vectors = np.take(self._vectors, picked, axis=0, out=room[: len(picked)], mode="clip")
                np.matmul(vectors, vector, out=products[start : start + len(picked)])

        in_halves(multiply, -(-len(rows) // _PART), least=_LEAST_PARTS)
        return np.clip(products, -1.0, 1.0, out=products)

    def _guess(self, vector: Floats, wanted: Mask, count: int) -> Rows:
        """So many rows of the mask that the first pass finds best, and all that it has not seen."""
        self.prepare()
        rows = int(np.count_nonzero(wanted))
        if self._first is None or count >= rows:
            return np.flatnonzero(wanted)
        guesses = self._first.products(vector, len(wanted))
        limits = np.iinfo(np.int32)
        stale = [row for row in self._stale if row < len(guesses)]
        guesses[stale] = limits.max
        guesses[~wanted] = limits.min
        return best_places(guesses, min(count + len(stale), rows))

    def prepare(self) -> None:
        """Bring the first pass up to date, if it is needed; its axes change when the rows have doubled."""
        count = int(np.count_nonzero(self._present))
        if count <= self._exact_up_to:
            return
        rows = np.flatnonzero(self._present)
        end = int(rows[-1]) + 1
        if self._first is None or count >= 2 * self._fitted:
            from mats.adapters.sqlite.first_pass import FirstPass  # noqa: PLC0415 - onnxruntime, for many rows only

            self._first, self._fitted = FirstPass(self._vectors[rows[:: -(-count // _SAMPLE)]]), count
            blocks = set(range(-(-end // BLOCK)))
        elif len(self._stale) > _STALE:
            blocks = {row // BLOCK for row in self._stale}
        else:
            return
        self._stale.clear()
        self._compute(self._first, sorted(blocks), end)

    def _compute(self, first: "FirstPass", blocks: Sequence[int], end: int) -> None:
        """Compute blocks of rows before the end."""

        def compute(start: int, stop: int) -> None:
            for place in range(start, stop):
                number = blocks[place]
                first.compute(number, self._vectors[number * BLOCK : min((number + 1) * BLOCK, end)])
                if place % _RELEASED == 0:
                    release_freed()

        in_halves(compute, len(blocks), least=2)
