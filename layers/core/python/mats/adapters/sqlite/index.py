"""The search index over SQLite: what is searched is in memory, postings for BM25 and a matrix for exact cosine."""

import functools
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

from mats.adapters.sqlite.arrays import FIRST_ROOM, Mask, best_places, release_freed
from mats.adapters.sqlite.database import Database, Readable
from mats.adapters.sqlite.matrix import Entries, Matrix
from mats.adapters.sqlite.postings import Document, Postings, pack
from mats.adapters.sqlite.profiles import to_blob
from mats.adapters.sqlite.registry import IN, as_json
from mats.adapters.sqlite.vectors import EXACT_UP_TO
from mats.domain.bm25 import count_terms
from mats.domain.capability import Id, Kind
from mats.domain.index_fields import FIELD_WEIGHTS, TEXTS, lexical_fields
from mats.domain.profile import Profile
from mats.domain.query import Filter
from mats.ports import Hit, SearchIndex, Stored, Vector

_CHANGED = (
    "SELECT change, row, findable, kind, length, terms, id, namespace, tags, visible_to, encoder, vector "
    "FROM entries {} LEFT JOIN lexical USING (row) WHERE change > ?"
)
_KINDS = {str(kind): kind for kind in Kind}
_PART = 4_096
"""Changed rows that are applied together."""
_FINDABLE = "SELECT row, profile FROM entries WHERE findable"
_INSERT_TERMS = "INSERT INTO lexical (row, length, terms) VALUES (?, ?, ?)"


class SqliteIndex:
    """The search index port over SQLite. Safe to share between threads; sees what other processes write."""

    name = "sqlite-fts5-1"
    """The key of its calibration. BM25 has the scale of SQLite's FTS5, which it once was: docs/decisions/0052."""

    def __init__(self, database: Database, *, encoder: str = "", exact_up_to: int = EXACT_UP_TO) -> None:
        """Load the vectors of one encoder, by its name; those of any other are not comparable and are left out.

        Searches by meaning are exact up to so many vectors; among more, they may miss some of the nearest.
        """
        threadpool_limits(1, user_api="blas")  # BLAS threads spin between products and starve other queries
        self._database = database
        self._encoder = encoder
        self._exact_up_to = exact_up_to
        self._matrix, self._postings = Matrix(), Postings()
        self._lock = threading.RLock()
        _renew_terms(database)
        self._source: Readable = database
        self._data_version = database.watch().version
        self._version = -1
        self._change = 0
        self._purge = -1
        self._catch_up()

    def weighing(self, weights: Mapping[str, float]) -> "SqliteIndex":
        """This index as it is now with other weights of the lexical fields, by the names of `FIELD_WEIGHTS`."""
        fork = self._fork(self._database)
        fork._postings = Postings()
        fork._postings.put([_document(row, profile, weights) for row, profile in self._database.rows(_FINDABLE)])
        return fork

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
            fork._matrix, fork._postings = self._matrix.copy(), self._postings.copy()
            fork._change, fork._purge = self._change, self._purge
        fork._source, fork._data_version, fork._version = source, lambda: 0, -1
        fork._catch_up()
        return fork

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Sequence[Hit]:
        with self._lock:
            mask = self._mask(admitted)
            scores = self._postings.scores(terms)[: len(mask)]
            rows = best_places(scores, depth, above=0, mask=mask[: len(scores)])
            return [Hit(id, score) for id, score in self._matrix.best(rows, scores[rows], depth)]

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Sequence[Hit]:
        with self._lock:
            mask = self._mask(admitted)
            return [Hit(id, cosine) for id, cosine in self._matrix.nearest(np.asarray(vector), mask, depth)]

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

    def namespaces(self, words: Collection[str], admitted: Filter) -> Collection[str]:
        with self._lock:
            mask = self._mask(admitted)
            return self._matrix.namespaces(words, mask)

    def page(self, admitted: Filter, *, after: Id | None, limit: int) -> Sequence[Id]:
        mask = self._mask(admitted)
        with self._source.reading() as connection:
            connection.create_function("admitted", 1, _reader(mask))
            query = "SELECT id FROM entries WHERE id > ? AND admitted(row) ORDER BY id LIMIT ?"
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

    def _mask(self, wanted: Filter) -> Mask:
        """The rows that pass the filter."""
        with self._lock:
            self._catch_up()
            return self._matrix.mask(wanted)

    def _catch_up(self) -> None:
        """Apply writes since the last call, by any process, to the arrays; cheap if there are none."""
        with self._lock:
            version = self._data_version()
            if version == self._version:
                return
            with self._source.reading() as connection:
                purge = connection.execute("SELECT purge FROM counter").fetchone()[0]
                if purge != self._purge:
                    last = connection.execute("SELECT ifnull(max(row), 0) FROM entries").fetchone()[0]
                    self._matrix = Matrix(max(FIRST_ROOM, last + 1), exact_up_to=self._exact_up_to)
                    self._postings, self._change, self._purge = Postings(), 0, purge
                whole = self._change == 0
                changes = connection.execute(_CHANGED.format("NOT INDEXED" if whole else ""), (self._change,))
                last = self._change
                while part := changes.fetchmany(_PART):
                    self._take_over(part)
                    last = max(last, *(change for change, *_ in part))
                self._postings.put([])
            if whole:
                release_freed()
            self._matrix.prepare()
            if whole:
                release_freed()
            self._version, self._change = version, last

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


def write(connection: sqlite3.Connection, entry: Stored, *, again: bool = False) -> None:
    """Index a revision, or its tombstone; an equal revision is a no-op unless `again`, an older one always."""
    profile = entry.profile
    found = "SELECT row, rev, findable, profile FROM entries WHERE id = ?"
    before = connection.execute(found, (profile.id,)).fetchone()
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
        if not again and profile.findable and _has_texts_of(profile, before[3]):
            return
        connection.execute("DELETE FROM lexical WHERE row = ?", (row,))
    if profile.findable and row is not None:
        connection.execute(_INSERT_TERMS, pack(row, count_terms(lexical_fields(profile), FIELD_WEIGHTS)))


def _has_texts_of(profile: Profile, indexed: str) -> bool:
    """Whether the indexed profile has the same terms, as if only its vector or its trust has changed."""
    return lexical_fields(Profile.model_validate_json(indexed)) == lexical_fields(profile)


def _document(row: int, profile: str, weights: Mapping[str, float] = FIELD_WEIGHTS) -> Document:
    return pack(row, count_terms(lexical_fields(Profile.model_validate_json(profile)), weights))


def _renew_terms(database: Database) -> None:
    """Write the terms of every entry again if another release wrote them, or nobody."""
    current = "SELECT texts FROM counter"
    if database.rows(current)[0][0] == TEXTS:
        return
    with database.writing() as connection:
        if connection.execute(current).fetchone()[0] != TEXTS:  # else another process has done it in the meantime
            connection.execute("DELETE FROM lexical")
            for row, profile in connection.execute(_FINDABLE).fetchall():
                connection.execute(_INSERT_TERMS, _document(row, profile))
            connection.execute("UPDATE counter SET texts = ?", (TEXTS,))


def _reader(mask: Mask) -> Callable[[int], int]:
    """Row number to 0 or 1; 0 for rows added after the mask."""
    flags = mask.tobytes()
    size = len(flags)
    return lambda row: flags[row] if row < size else 0
