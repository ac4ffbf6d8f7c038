"""The search index over SQLite: FTS5 for BM25, a matrix in memory for exact cosine."""

import itertools
import json
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from mats.adapters.sqlite.database import Database, Readable, Transaction
from mats.adapters.sqlite.matrix import Mask, Matrix
from mats.adapters.sqlite.profiles import to_blob
from mats.adapters.sqlite.registry import IN, as_json
from mats.domain.capability import Id, Kind
from mats.domain.index_fields import FIELD_WEIGHTS, TEXTS, lexical_fields
from mats.domain.profile import Profile
from mats.domain.query import Filter
from mats.ports import Hit, SearchIndex, Stored, Vector

_COLUMNS = ", ".join(FIELD_WEIGHTS)
_INSERT_TEXT = f"INSERT INTO lexical (rowid, {_COLUMNS}) VALUES (?, {', '.join('?' * len(FIELD_WEIGHTS))})"
_CHANGED = (
    "SELECT change, row, id, findable, kind, namespace, tags, visible_to, encoder, vector FROM entries "
    "WHERE change > ? ORDER BY change"
)


class SqliteIndex:
    """The search index port over SQLite. Safe to share between threads; sees what other processes write."""

    name = "sqlite-fts5-1"
    """Engine and version of its tables in schema.sql; the key of its calibration."""

    def __init__(self, database: Database, *, encoder: str = "", weights: Mapping[str, float] = FIELD_WEIGHTS) -> None:
        """Load the vectors of one encoder, by its name; those of any other are not comparable and are left out.

        `weights` are of a word in each lexical field, by the names of `FIELD_WEIGHTS`.
        """
        threadpool_limits(1, user_api="blas")  # BLAS threads spin between products and starve other queries
        self._database = database
        self._encoder = encoder
        self._score = f"-bm25(lexical, {', '.join(str(float(weights[name])) for name in FIELD_WEIGHTS)})"
        self._matrix = Matrix()
        self._lock = threading.RLock()
        _renew_texts(database)
        self._source: Readable = database
        self._data_version = database.watch().version
        self._filter_names: Iterator[str] = itertools.repeat("admitted")
        self._version = -1
        self._change = 0
        self._purge = 0
        self._catch_up()

    def weighing(self, weights: Mapping[str, float]) -> "SqliteIndex":
        """The same index with other weights of the lexical fields."""
        return SqliteIndex(self._database, encoder=self._encoder, weights=weights)

    def put(self, entries: Sequence[Stored]) -> None:
        """In one transaction."""
        with self._database.writing() as connection:
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

    def _fork(self, transaction: Transaction) -> "SqliteIndex":
        """The same index over an open transaction, with its writes in the matrix."""
        fork = copy(self)
        fork._lock = threading.RLock()
        with self._lock:
            self._catch_up()
            fork._matrix = self._matrix.copy()
            fork._change, fork._purge = self._change, self._purge
        fork._source, fork._data_version, fork._version = transaction, lambda: 0, -1
        # FTS5 keeps a statement active in a transaction, which prevents replacing a function: use a new name each time
        fork._filter_names = map("admitted{}".format, itertools.count())
        fork._catch_up()
        return fork

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """Ties at the cut are broken by age."""
        if not terms:
            return []
        mask, everything = self._mask(admitted)
        with self._source.reading() as connection:
            only = "" if everything else f"AND {self._filter(connection, mask)}(rowid)"
            query = (
                f"SELECT rowid, {self._score} AS score FROM lexical WHERE lexical MATCH ? {only} "
                "ORDER BY score DESC, rowid LIMIT ?"
            )
            rows = connection.execute(query, (_any_of(terms), depth)).fetchall()
        with self._lock:
            hits = [Hit(id, score) for row, score in rows if (id := self._matrix.id_of(row)) is not None]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Sequence[Hit]:
        with self._lock:
            mask, _ = self._mask(admitted)
            return [Hit(id, cosine) for id, cosine in self._matrix.nearest(np.asarray(vector), mask, depth)]

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Mapping[Id, float]:
        with self._lock:
            self._catch_up()
            rows = self._matrix.rows(ids)
        scores = dict.fromkeys(rows.values(), 0.0)
        if terms and rows:
            query = f"SELECT rowid, {self._score} FROM lexical WHERE lexical MATCH ? AND rowid IN {IN}"
            found = self._source.rows(query, (_any_of(terms), json.dumps(list(rows))))
            scores |= {rows[row]: score for row, score in found}
        return scores

    def cosine_of(self, vector: Vector, ids: Collection[Id]) -> Mapping[Id, float]:
        with self._lock:
            self._catch_up()
            return self._matrix.cosines(np.asarray(vector), ids)

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        query = f"SELECT id, profile FROM entries WHERE findable AND id IN {IN}"
        rows = self._source.rows(query, (as_json(ids),))
        return {id: Profile.model_validate_json(profile) for id, profile in rows}

    def namespaces(self, words: Collection[str], admitted: Filter) -> Collection[str]:
        with self._lock:
            mask, _ = self._mask(admitted)
            return self._matrix.namespaces(words, mask)

    def page(self, admitted: Filter, *, after: Id | None, limit: int) -> Sequence[Id]:
        mask, _ = self._mask(admitted)
        with self._source.reading() as connection:
            query = f"SELECT id FROM entries WHERE id > ? AND {self._filter(connection, mask)}(row) ORDER BY id LIMIT ?"
            rows = connection.execute(query, (after or "", limit)).fetchall()
        return [Id(id) for (id,) in rows]

    def revisions(self) -> Iterator[tuple[Id, int, bool]]:
        rows = self._source.rows("SELECT id, rev, findable FROM entries ORDER BY id")
        yield from ((Id(id), rev, bool(findable)) for id, rev, findable in rows)

    def purge(self, ids: Collection[Id]) -> None:
        query = f"DELETE FROM entries WHERE NOT findable AND id IN {IN}"
        with self._database.writing() as connection:
            if connection.execute(query, (as_json(ids),)).rowcount:
                connection.execute("UPDATE counter SET purge = purge + 1")

    def _filter(self, connection: sqlite3.Connection, mask: Mask) -> str:
        """Register the mask as an SQL function of a row; returns its name."""
        name = next(self._filter_names)
        connection.create_function(name, 1, _reader(mask))
        return name

    def _mask(self, wanted: Filter) -> tuple[Mask, bool]:
        """Mask of the rows that pass the filter, and whether it covers every findable row."""
        with self._lock:
            self._catch_up()
            mask = self._matrix.mask(wanted)
            return mask, int(mask.sum()) == self._matrix.findable

    def _catch_up(self) -> None:
        """Apply writes since the last call, by any process, to the matrix; cheap if there are none."""
        with self._lock:
            version = self._data_version()
            if version == self._version:
                return
            with self._source.reading() as connection:
                purge = connection.execute("SELECT purge FROM counter").fetchone()[0]
                if purge != self._purge:
                    self._matrix, self._change, self._purge = Matrix(), 0, purge
                for entry in connection.execute(_CHANGED, (self._change,)):
                    self._take_over(entry)
            self._version = version

    def _take_over(self, entry: Sequence[Any]) -> None:
        """Update one row of the matrix, from a row of `_CHANGED`."""
        change, row, id, findable, kind, namespace, tags, visible_to, encoder, blob = entry
        if findable and kind:
            self._matrix.put(
                row,
                id,
                kind=Kind(kind),
                namespace=namespace,
                tags=frozenset(json.loads(tags)),
                visible_to=None if visible_to is None else frozenset(json.loads(visible_to)),
                vector=np.frombuffer(blob, np.float32) if blob and encoder == self._encoder else None,
            )
        else:
            self._matrix.drop(row, id)
        self._change = change


def write(connection: sqlite3.Connection, entry: Stored, *, again: bool = False) -> None:
    """Index a revision, or its tombstone; an equal revision is a no-op unless `again`, an older one always."""
    profile = entry.profile
    before = connection.execute("SELECT row, rev, findable FROM entries WHERE id = ?", (profile.id,)).fetchone()
    if before and before[1] >= profile.rev + again:
        return
    change = connection.execute("UPDATE counter SET change = change + 1 RETURNING change").fetchone()[0]
    values = {
        "row": before[0] if before else None,
        "id": profile.id,
        "rev": profile.rev,
        "findable": profile.findable,
        "change": change,
        "kind": profile.kind,
        "namespace": profile.namespace,
        "tags": json.dumps(profile.tags),
        "visible_to": None if profile.visible_to is None else json.dumps(profile.visible_to),
        "profile": profile.model_dump_json(),
        "encoder": profile.encoder,
        "vector": to_blob(entry.vector) if profile.findable else None,
    }
    row = connection.execute(
        f"INSERT OR REPLACE INTO entries ({', '.join(values)}) VALUES ({', '.join(f':{name}' for name in values)})",
        values,
    ).lastrowid
    if before and before[2]:
        connection.execute("DELETE FROM lexical WHERE rowid = ?", (row,))
    if profile.findable and row is not None:
        _write_texts(connection, row, profile)


def _write_texts(connection: sqlite3.Connection, row: int, profile: Profile) -> None:
    fields = lexical_fields(profile)
    connection.execute(_INSERT_TEXT, (row, *(fields[name] for name in FIELD_WEIGHTS)))


def _renew_texts(database: Database) -> None:
    """Write all lexical fields again if another release wrote them in another form; searches see the old until then."""
    current = "SELECT texts FROM counter"
    if database.rows(current)[0][0] == TEXTS:
        return
    with database.writing() as connection:
        if connection.execute(current).fetchone()[0] != TEXTS:  # else another process has done it in the meantime
            connection.execute("DELETE FROM lexical")
            for row, profile in connection.execute("SELECT row, profile FROM entries WHERE findable").fetchall():
                _write_texts(connection, row, Profile.model_validate_json(profile))
            connection.execute("UPDATE counter SET texts = ?", (TEXTS,))


def _any_of(terms: Sequence[str]) -> str:
    """An FTS5 query: any of these words, each quoted, so that none is an operator."""
    return " OR ".join(f'"{term}"' for term in terms)


def _reader(mask: Mask) -> Callable[[int], int]:
    """Row number to 0 or 1. Called for every matching row, including rows added after the mask, so it must be fast."""
    flags = mask.tobytes()
    size = len(flags)
    return lambda row: flags[row] if row < size else 0
