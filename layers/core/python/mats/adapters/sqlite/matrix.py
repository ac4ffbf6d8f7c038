"""Every vector of the index and the filtered attributes in memory; updated in place."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import simsimd

from mats.adapters.sqlite.arrays import FIRST_ROOM, Copied, Floats, Mask, Rows, best_places, with_room
from mats.domain.capability.capability import Id, Kind
from mats.domain.search.query import Filter

V = TypeVar("V", bound=Hashable)
Integers = npt.NDArray[np.int8]

_LARGEST = 127  # Of the integers of a rounded vector
_RESCORED = 2  # Rows whose cosine is computed, as a multiple of those wanted


class _Codes(dict[V, int]):
    """The number of each distinct value, which is given when a value is first looked up."""

    def __missing__(self, value: V) -> int:
        self[value] = code = len(self)
        return code


class Column(Copied, Generic[V]):
    """Dictionary-encoded column: a predicate is evaluated once per distinct value, not once per row."""

    def __init__(self) -> None:
        self._codes: _Codes[V] = _Codes()
        self._rows = np.zeros(FIRST_ROOM, np.int32)

    def put(self, rows: Rows, values: Iterable[V]) -> None:
        self._rows = with_room(self._rows, int(rows.max()))
        self._rows[rows] = list(map(self._codes.__getitem__, values))

    def values_of(self, rows: Rows) -> frozenset[V]:
        """The distinct values of rows."""
        codes, values = np.unique(self._rows[rows]).tolist(), list(self._codes)
        return frozenset(values[code] for code in codes)

    def where(self, admits: Callable[[V], bool], size: int) -> Mask:
        """Mask of the first `size` rows whose value is admitted."""
        table = np.fromiter((admits(value) for value in self._codes), np.bool_, len(self._codes))
        return np.ones(size, np.bool_) if table.all() else table[self._rows[:size]]


class _Vectors(Copied):
    """Vectors by row, and each as integers of 8 bits, whose products find the best ones. docs/decisions/0106."""

    def __init__(self, room: int, width: int) -> None:
        self._vectors: Floats = np.zeros((room, width), np.float32)
        self._rounded: Integers = np.zeros((room, width), np.int8)
        self._steps: Floats = np.zeros(room, np.float32)  # What an integer is multiplied by; 0: no vector

    @property
    def width(self) -> int:
        return int(self._vectors.shape[1])

    def put(self, rows: Rows, vectors: Floats) -> None:
        last = int(rows.max())
        self._vectors, self._rounded = with_room(self._vectors, last), with_room(self._rounded, last)
        self._steps = with_room(self._steps, last)
        self._vectors[rows] = vectors
        self._rounded[rows], self._steps[rows] = _round(vectors)

    def drop(self, rows: Rows) -> None:
        self._steps[rows[rows < len(self._steps)]] = 0

    def nearest(self, vector: Floats, mask: Mask, depth: int) -> tuple[Rows, Floats]:
        """The `depth` best rows of the mask and some more, ascending, with the cosine of each."""
        steps = self._steps[: len(mask)]
        [wanted], _ = _round(vector[np.newaxis])
        products = np.asarray(simsimd.dot(wanted, self._rounded[: len(steps)]), np.float32)
        products *= steps
        rows = best_places(products, _RESCORED * depth, mask=mask[: len(steps)] & (steps > 0))
        return rows, self._cosines(vector, rows)

    def cosines(self, vector: Floats, rows: Iterable[int]) -> Mapping[int, float]:
        """The cosine of each of these rows that has a vector."""
        known = [row for row in rows if row < len(self._steps) and self._steps[row] > 0]
        return dict(zip(known, self._cosines(vector, known).tolist(), strict=True))

    def _cosines(self, vector: Floats, rows: Rows | list[int]) -> Floats:
        products: Floats = np.vecdot(self._vectors[rows], vector)
        return np.clip(products, -1.0, 1.0, out=products)


def _round(vectors: Floats) -> tuple[Integers, Floats]:
    """Each vector as multiples of a step, which is the same for its components, and this step."""
    steps = np.maximum(np.abs(vectors).max(axis=1) / _LARGEST, np.finfo(np.float32).tiny)
    return np.rint(vectors / steps[:, np.newaxis]).astype(np.int8), steps


class Entries(NamedTuple):
    """Findable rows of the index by column; `vectors`: float32, or None without one that can be compared."""

    rows: Sequence[int]
    ids: Sequence[Id]
    kinds: Sequence[Kind | None]
    namespaces: Sequence[str]
    tags: Sequence[frozenset[str]]
    visible_to: Sequence[frozenset[str] | None]
    vectors: Sequence[bytes | None]


class Matrix(Copied):
    """Rows of the index by their number in the database. Not safe to share between threads without a lock."""

    def __init__(self, room: int = FIRST_ROOM) -> None:
        """Without rows, with room for so many vectors."""
        self._ids: list[Id | None] = []  # By row number
        self._room = room
        self._vectors: _Vectors | None = None
        self._findable: Mask = np.zeros(FIRST_ROOM, np.bool_)
        self._kinds: Column[Kind | None] = Column()
        self._namespaces: Column[str] = Column()
        self._tags: Column[frozenset[str]] = Column()
        self._audiences: Column[frozenset[str] | None] = Column()

    def put(self, added: Entries) -> None:
        """Add findable rows, each once, or replace them."""
        if not added.rows:
            return
        rows = np.array(added.rows, np.intp)
        last = int(rows.max())
        self._ids.extend([None] * (last + 1 - len(self._ids)))
        for row, id in zip(added.rows, added.ids, strict=True):
            self._ids[row] = id
        self._findable = with_room(self._findable, last)
        self._findable[rows] = True
        self._kinds.put(rows, added.kinds)
        self._namespaces.put(rows, added.namespaces)
        self._tags.put(rows, added.tags)
        self._audiences.put(rows, added.visible_to)
        blobs = [blob for blob in added.vectors if blob is not None]
        encoded = rows if len(blobs) == len(rows) else rows[[blob is not None for blob in added.vectors]]
        if self._vectors is not None and len(blobs) < len(rows):
            self._vectors.drop(rows)
        if blobs:
            vectors = np.frombuffer(b"".join(blobs), np.float32).reshape(len(blobs), -1)
            if self._vectors is None:
                self._vectors = _Vectors(self._room, vectors.shape[1])
            self._vectors.put(encoded, vectors)

    def drop(self, row: int) -> None:
        if row < self.size:
            self._ids[row], self._findable[row] = None, False
        if self._vectors is not None:
            self._vectors.drop(np.array([row], np.intp))

    def mask(self, wanted: Filter) -> Mask:
        """The findable rows that pass the filter."""
        mask = self._findable[: self.size] & self._audiences.where(wanted.sees, self.size)
        if wanted.kinds:
            mask &= self._kinds.where(wanted.admits_kind, self.size)
        if wanted.namespaces or wanted.scope.exact_namespaces:
            mask &= self._namespaces.where(wanted.admits_namespace, self.size)
        if wanted.tags or wanted.scope.tag_choices:
            mask &= self._tags.where(wanted.admits_tags, self.size)
        return mask

    def namespaces(self, rows: Rows) -> frozenset[str]:
        return self._namespaces.values_of(rows)

    def nearest(self, vector: Floats, mask: Mask, depth: int) -> list[tuple[Id, float]]:
        """At most `depth` rows of the mask by cosine, best first, ties by id."""
        vectors = self._of_width(vector)
        return [] if vectors is None else self.best(*vectors.nearest(vector, mask, depth), depth)

    def ids(self, rows: Iterable[int]) -> list[Id]:
        return [id for id in (self._ids[row] for row in rows) if id is not None]

    def best(self, rows: Rows, scores: npt.NDArray[np.floating], depth: int) -> list[tuple[Id, float]]:
        """At most `depth` of these rows by their scores, best first, ties by id."""
        places = best_places(scores, depth)
        rows, scores = rows[places], scores[places]
        ids = [self._ids[row] for row in rows.tolist()]
        hits = [(id, score) for id, score in zip(ids, scores.tolist(), strict=True) if id is not None]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:depth]

    def cosines(self, vector: Floats, rows: Iterable[int]) -> Mapping[int, float]:
        """The cosine of each of these rows that has a vector."""
        vectors = self._of_width(vector)
        return {} if vectors is None else vectors.cosines(vector, rows)

    def _of_width(self, vector: Floats) -> _Vectors | None:
        """The vectors that this one can be compared with, if there are any."""
        return self._vectors if self._vectors is not None and vector.shape == (self._vectors.width,) else None

    @property
    def size(self) -> int:
        """Number of rows up to the last findable one."""
        return len(self._ids)

    def findable(self, rows: Mapping[int, Id]) -> Mapping[int, Id]:
        """Those of these rows that are findable and have this id."""
        return {row: id for row, id in rows.items() if row < self.size and self._ids[row] == id}
