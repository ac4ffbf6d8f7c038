"""The search index over SQLite: what is searched is in memory, postings for BM25 and a matrix for exact cosine."""

import functools
import json
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mats.adapters.sqlite.arrays import FIRST_ROOM, Mask, Rows, best_places, release_freed
from mats.adapters.sqlite.database import Database, Readable
from mats.adapters.sqlite.entries import drop_tombstones, read_ids, read_revisions, renew_terms, write
from mats.adapters.sqlite.matrix import Entries, Matrix
from mats.adapters.sqlite.postings import Document, Postings
from mats.adapters.sqlite.registry import IN, as_json
from mats.domain.capability.capability import Id, Kind
from mats.domain.profile.index_keys import TRUST, TRUSTED_KEYS, name_key
from mats.domain.profile.profile import Profile
from mats.domain.search.lookups import NameUse, Vector
from mats.domain.search.query import Filter
from mats.domain.search.scale import Scores
from mats.domain.text.spelling import near, nearest, word_of
from mats.domain.text.words import stem
from mats.ports import SearchIndex, Stored

_CHANGED = (
    "SELECT change, row, findable, kind, length, terms, id, namespace, tags, visible_to, encoder, vector "
    "FROM entries {} LEFT JOIN lexical USING (row) WHERE change > ?"
)
_KINDS = {str(kind): kind for kind in Kind}
_PART = 4_096  # Changed rows that are applied together
_MASKS = 16  # Filters whose rows are kept until the registry changes, a byte for each row
_REMEMBERED = 10_000  # Uses of names that are kept until the registry changes, some hundred bytes each
_SPARE = 8  # Room for new rows, as a part of those that are there; it takes memory only once it is used


_NEW_STEMS = "SELECT number, stem FROM vocabulary WHERE number > ?"


@dataclass(slots=True)
class _Vocabulary:
    """The stems of the index by their first letter. Not safe to share without a lock."""

    stems: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _last: int = 0

    def catch_up(self, source: Readable) -> None:
        for number, its_stem in source.rows(_NEW_STEMS, (self._last,)):
            self.stems[its_stem[0]].append(its_stem)
            self._last = max(self._last, number)


class SqliteIndex:
    """The search index port over SQLite. Safe to share between threads; sees what other processes write."""

    name = "sqlite-bm25-1"
    """The key of its calibration. BM25 has the scale of SQLite's FTS5, which it once was: docs/decisions/0052."""

    def __init__(self, database: Database, *, encoder: str = "") -> None:
        """Load the vectors of one encoder, by its name; those of any other are not comparable and are left out."""
        threadpool_limits(1, user_api="blas")  # BLAS threads spin between products and starve other queries
        self._database = database
        self._encoder = encoder
        self._matrix, self._postings = Matrix(), Postings()
        self._vocabulary = _Vocabulary()
        self._uses: dict[tuple[Filter, str], NameUse] = {}
        self._masks: dict[Filter, Mask] = {}
        self._lock = threading.RLock()
        renew_terms(database)
        self._source: Readable = database
        self._data_version = database.watch().version
        self._version = -1
        self._change = -1
        self._catch_up()

    def put(self, entries: Sequence[Stored]) -> None:
        """In one transaction. After a power cut, profiles whose entry was lost are not marked as indexed either."""
        with self._database.writing(durable=False) as connection:
            for entry in entries:
                write(connection, entry)

    @contextmanager
    def with_candidate(self, entry: Stored) -> Iterator[SearchIndex]:
        """Write the entry in a transaction that is rolled back. Writers wait for the end of the block."""
        with self._database.rolled_back() as transaction:
            with transaction.reading() as connection:
                before = connection.execute("SELECT rev FROM entries WHERE id = ?", (entry.profile.id,)).fetchone()
                rev = (before[0] if before else 0) + 1
                write(connection, replace(entry, profile=entry.profile.model_copy(update={"rev": rev})))
            yield self._fork(transaction)

    def _fork(self, source: Readable) -> "SqliteIndex":
        """The same index as `source` has it now; later writes are not followed."""
        fork = copy(self)
        fork._lock = threading.RLock()
        with self._lock:
            self._catch_up()
            fork._vocabulary, fork._uses, fork._masks = _Vocabulary(), {}, {}
            fork._matrix, fork._postings = copy(self._matrix), copy(self._postings)
            fork._change = self._change
        fork._source, fork._data_version, fork._version = source, lambda: 0, -1
        fork._catch_up()
        return fork

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Scores:
        with self._lock:
            mask = self._mask(admitted)
            scores = self._postings.scores(terms)[: len(mask)]
            rows = best_places(scores, depth, above=0, mask=mask[: len(scores)])
            return dict(self._matrix.best(rows, scores[rows], depth))

    def exact(self, keys: Collection[str], admitted: Filter, *, most: int) -> Sequence[Id]:
        """Of equal trust, those that were first in the registry."""
        with self._lock:
            mask = self._mask(admitted)
            rows = self._rows_with(mask, *keys)
            if len(rows) > most:
                held = [worth * np.isin(rows, self._postings.rows_with(key)) for key, worth in TRUST.items()]
                rows = rows[np.argsort(-np.sum(held, axis=0), kind="stable")]
            return self._matrix.ids(rows[:most].tolist())

    def count(self, admitted: Filter) -> int:
        return int(np.count_nonzero(self._mask(admitted)))

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Scores:
        with self._lock:
            mask = self._mask(admitted)
            return dict(self._matrix.nearest(np.asarray(vector), mask, depth))

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Mapping[Id, float]:
        with self._lock:
            rows = self._rows(ids)
            scores = self._postings.scores(terms, only=list(rows))
            return {id: float(scores[row]) for row, id in rows.items()}

    def cosine_of(self, vector: Vector, ids: Collection[Id]) -> Mapping[Id, float]:
        with self._lock:
            rows = self._rows(ids)
            return {rows[row]: cosine for row, cosine in self._matrix.cosines(np.asarray(vector), rows).items()}

    def _rows(self, ids: Collection[Id]) -> Mapping[int, Id]:
        """The findable ones of these, by row."""
        self._catch_up()
        rows = self._source.rows(f"SELECT row, id FROM entries WHERE id IN {IN}", (as_json(ids),))
        return self._matrix.findable(dict(rows))

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        query = f"SELECT id, profile FROM entries WHERE findable AND id IN {IN}"
        rows = self._source.rows(query, (as_json(ids),))
        return {id: Profile.model_validate_json(profile) for id, profile in rows}

    def names(self, asked: Collection[str], admitted: Filter) -> Mapping[str, NameUse]:
        with self._lock:
            mask = self._mask(admitted)
            known = self._postings.terms_of(list(map(name_key, asked)))
            if len(self._uses) > _REMEMBERED:
                self._uses.clear()
            for key in known:
                if (admitted, key) not in self._uses:
                    self._uses[admitted, key] = self._name_use(key, mask)
            uses = {key[1:]: self._uses[admitted, key] for key in known}
            return {name: use for name, use in uses.items() if use.owned}

    def _name_use(self, key: str, mask: Mask) -> NameUse:
        owned = self._rows_with(mask, key)
        holding = [self._rows_with(mask, word) for word in key[1:].split()]
        elsewhere = np.setdiff1d(functools.reduce(np.intersect1d, holding), owned)
        trusted = np.intersect1d(owned, self._rows_with(mask, *TRUSTED_KEYS))
        spaces, of_trusted = self._matrix.namespaces(owned), self._matrix.namespaces(trusted)
        return NameUse(len(owned), len(elsewhere), spaces, of_trusted)

    def spellings(self, words: Collection[str], admitted: Filter) -> Mapping[str, str]:
        with self._lock:
            visible, mask = self._mask(admitted.visible), self._mask(admitted)
            unknown = [word for word in words if not self._postings.is_in(visible, stem(word))]
            near = {word: self._nearest(word, mask) for word in unknown}
            return {word: word_of(found) for word, found in near.items() if found}

    def _nearest(self, word: str, mask: Mask) -> str:
        self._vocabulary.catch_up(self._source)
        stems = self._vocabulary.stems.get(word[0], ())
        return nearest(word, {each: len(self._rows_with(mask, each)) for each in near(word, stems)})

    def _rows_with(self, mask: Mask, *terms: str) -> Rows:
        rows = self._postings.rows_with(*terms)
        rows = rows[: np.searchsorted(rows, len(mask))]
        return rows[mask[rows]]

    def namespaces(self, admitted: Filter) -> Collection[str]:
        with self._lock:
            return self._matrix.namespaces(np.flatnonzero(self._mask(admitted)))

    def page(self, admitted: Filter, *, after: Id | None, limit: int) -> Sequence[Id]:
        flags = self._mask(admitted).tobytes()
        with self._source.reading() as connection:
            connection.create_function("admitted", 1, lambda row: flags[row] if row < len(flags) else 0)
            query = "SELECT id FROM entries WHERE id > ? AND admitted(row) ORDER BY id LIMIT ?"
            rows = connection.execute(query, (after or "", limit)).fetchall()
        return [Id(id) for (id,) in rows]

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        return read_ids(self._source, after)

    def revisions(self, ids: Collection[Id]) -> Mapping[Id, int]:
        return read_revisions(self._source, ids)

    def purge(self, ids: Collection[Id]) -> None:
        with self._database.writing() as connection:
            drop_tombstones(connection, ids)

    def _mask(self, wanted: Filter) -> Mask:
        with self._lock:
            self._catch_up()
            if wanted not in self._masks:
                mask, scope = self._matrix.mask(wanted), wanted.scope
                if scope.keys:
                    rows, mask = self._rows_with(mask, *scope.keys), np.zeros_like(mask)
                    mask[rows] = True
                if scope.without_keys:
                    mask[self._rows_with(mask, *scope.without_keys)] = False
                if len(self._masks) >= _MASKS:
                    self._masks.clear()
                mask.flags.writeable = False
                self._masks[wanted] = mask
            return self._masks[wanted]

    def _catch_up(self) -> None:
        """Apply writes since the last call, by any process, to the arrays; cheap if there are none."""
        with self._lock:
            version = self._data_version()
            if version == self._version:
                return
            self._uses.clear()
            self._masks.clear()
            with self._source.reading() as connection:
                [purge] = connection.execute("SELECT purge FROM counter").fetchone()
                whole = self._change < purge
                if whole:
                    self._begin(connection)
                changes = connection.execute(_CHANGED.format("NOT INDEXED" if whole else ""), (self._change,))
                last = max(self._change, purge)
                while part := changes.fetchmany(_PART):
                    self._take_over(part)
                    last = max(last, *(change for change, *_ in part))
            if whole:
                self._postings.compact()
                release_freed()
            else:
                self._postings.put([])
            self._version, self._change = version, last

    def _begin(self, connection: sqlite3.Connection) -> None:
        """Make empty arrays with room for every row."""
        [last] = connection.execute("SELECT ifnull(max(row), 0) FROM entries").fetchone()
        room = max(FIRST_ROOM, last + 1 + last // _SPARE)
        self._change, self._matrix, self._postings = 0, Matrix(room), Postings()

    def _take_over(self, changed: Sequence[Sequence[Any]]) -> None:
        """Apply rows of `_CHANGED` to the arrays."""
        gone = [row for _, row, findable, kind, *_ in changed if not (findable and kind)]
        for row in gone:
            self._matrix.drop(row)
            self._postings.drop(row)
        if gone:
            changed = [each for each in changed if each[2] and each[3]]
        if not changed:
            return
        columns = zip(*changed, strict=True)
        _, rows, _, names, lengths, terms, ids, namespaces, labels, visible_to, encoders, blobs = columns
        audiences = [None if each is None else _labels(each) for each in visible_to]
        vectors = [
            (blob or None) if encoder == self._encoder else None for blob, encoder in zip(blobs, encoders, strict=True)
        ]
        kinds, tags = list(map(_KINDS.__getitem__, names)), list(map(_labels, labels))
        self._matrix.put(Entries(rows, ids, kinds, namespaces, tags, audiences, vectors))
        self._postings.put(list(map(Document, rows, lengths, terms)), merge=False)


@functools.lru_cache(maxsize=4_096)
def _labels(text: str) -> frozenset[str]:
    return frozenset(json.loads(text))
