"""Every vector of the index and the filtered attributes in memory; updated in place."""

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from mats.domain.capability import Id, Kind
from mats.domain.query import Filter

V = TypeVar("V", bound=Hashable)
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]

FIRST_ROOM = 1_024


class Column(Generic[V]):
    """Dictionary-encoded column: a predicate is evaluated once per distinct value, not once per row."""

    def __init__(self) -> None:
        self._codes: dict[V, int] = {}
        self._rows = np.zeros(FIRST_ROOM, np.int32)

    def __setitem__(self, row: int, value: V) -> None:
        self._rows = with_room(self._rows, row)
        self._rows[row] = self._codes.setdefault(value, len(self._codes))

    def copy(self) -> "Column[V]":
        other: Column[V] = Column()
        other._codes, other._rows = dict(self._codes), self._rows.copy()
        return other

    def where(self, admits: Callable[[V], bool], size: int) -> Mask:
        """Mask of the first `size` rows whose value is admitted."""
        table = np.fromiter((admits(value) for value in self._codes), np.bool_, len(self._codes))
        return table[self._rows[:size]]

    def values(self, mask: Mask) -> Collection[V]:
        """The distinct values of the rows of a mask."""
        values = list(self._codes)
        return [values[code] for code in np.unique(self._rows[: len(mask)][mask])]


class Matrix:
    """Rows of the index by their number in the database. Not safe to share between threads without a lock."""

    def __init__(self) -> None:
        self._row_of: dict[Id, int] = {}
        self._id_of: dict[int, Id] = {}
        self._size = 0
        self._vectors: Floats = np.zeros((0, 0), np.float32)
        self._findable: Mask = np.zeros(FIRST_ROOM, np.bool_)
        self._encoded: Mask = np.zeros(FIRST_ROOM, np.bool_)
        self._kinds: Column[Kind | None] = Column()
        self._namespaces: Column[str] = Column()
        self._tags: Column[frozenset[str]] = Column()
        self._audiences: Column[frozenset[str] | None] = Column()

    def put(
        self,
        row: int,
        id: Id,
        *,
        kind: Kind | None,
        namespace: str,
        tags: frozenset[str],
        visible_to: frozenset[str] | None,
        vector: Floats | None,
    ) -> None:
        """Add a findable row, or replace it."""
        self._row_of[id], self._id_of[row] = row, id
        self._size = max(self._size, row + 1)
        self._findable, self._encoded = with_room(self._findable, row), with_room(self._encoded, row)
        self._kinds[row], self._namespaces[row] = kind, namespace
        self._tags[row], self._audiences[row] = tags, visible_to
        if vector is not None:
            if not self._vectors.size:
                self._vectors = np.zeros((FIRST_ROOM, len(vector)), np.float32)
            self._vectors = with_room(self._vectors, row)
            self._vectors[row] = vector
        self._encoded[row], self._findable[row] = vector is not None, True

    def copy(self) -> "Matrix":
        """An independent copy with capacity for one more row."""
        other = Matrix()
        other._row_of, other._id_of, other._size = dict(self._row_of), dict(self._id_of), self._size
        if self._vectors.size:
            other._vectors = np.zeros((self._size + 1, self._vectors.shape[1]), np.float32)
            other._vectors[: self._size] = self._vectors[: self._size]
        other._findable, other._encoded = self._findable.copy(), self._encoded.copy()
        other._kinds, other._namespaces = self._kinds.copy(), self._namespaces.copy()
        other._tags, other._audiences = self._tags.copy(), self._audiences.copy()
        return other

    def drop(self, row: int, id: Id) -> None:
        """Make a row unfindable."""
        self._row_of.pop(id, None)
        self._id_of.pop(row, None)
        if row < self._size:
            self._findable[row] = False

    def mask(self, wanted: Filter) -> Mask:
        """The findable rows that pass the filter."""
        mask = self._findable[: self._size] & self._audiences.where(wanted.sees, self._size)
        if wanted.kinds:
            mask &= self._kinds.where(wanted.admits_kind, self._size)
        if wanted.namespaces or wanted.scope.exact_namespaces:
            mask &= self._namespaces.where(wanted.admits_namespace, self._size)
        if wanted.tags or wanted.scope.tag_choices:
            mask &= self._tags.where(wanted.admits_tags, self._size)
        return mask

    def namespaces(self, words: Collection[str], mask: Mask) -> Collection[str]:
        """The namespaces of the mask's rows that contain each of these words."""
        some = next(iter(words), "")  # decides on most of them, at once

        def admits(namespace: str) -> bool:
            return some in namespace and all(word in namespace for word in words)

        return self._namespaces.values(mask & self._namespaces.where(admits, self._size))

    def nearest(self, vector: Floats, mask: Mask, depth: int) -> list[tuple[Id, float]]:
        """At most `depth` rows of the mask by cosine, best first, ties by id."""
        if vector.shape != self._vectors.shape[1:]:
            return []
        size = min(self._size, len(self._vectors))
        reachable = mask[:size] & self._encoded[:size]
        return self.best(np.clip(self._vectors[:size] @ vector, -1.0, 1.0), reachable, depth)

    def best(self, scores: npt.NDArray[np.floating], among: Mask, depth: int) -> list[tuple[Id, float]]:
        """At most `depth` of the mask's rows by score, best first, ties by id."""
        rows = np.flatnonzero(among)
        if len(rows) > depth:
            found = scores[rows]
            rows = rows[found >= np.partition(found, -depth)[-depth]]
        hits = [(self._id_of[int(row)], float(scores[row])) for row in rows]
        return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:depth]

    def cosines(self, vector: Floats, ids: Collection[Id]) -> Mapping[Id, float]:
        """The cosine of each of these that has a vector."""
        if vector.shape != self._vectors.shape[1:]:
            return {}
        rows = {row: id for row, id in self.rows(ids).items() if self._encoded[row]}
        return {id: float(np.clip(self._vectors[row] @ vector, -1.0, 1.0)) for row, id in rows.items()}

    @property
    def findable(self) -> int:
        """The number of findable rows."""
        return len(self._row_of)

    def rows(self, ids: Collection[Id]) -> Mapping[int, Id]:
        """The findable ones of these, by row number."""
        return {self._row_of[id]: id for id in ids if id in self._row_of}


A = TypeVar("A", Floats, Mask, npt.NDArray[np.int32])


def with_room(values: A, row: int) -> A:
    """The same array, at least doubled if the row is beyond its end."""
    if row < len(values):
        return values
    grown = np.zeros((max(row + 1, 2 * len(values)), *values.shape[1:]), values.dtype)
    grown[: len(values)] = values
    return grown
