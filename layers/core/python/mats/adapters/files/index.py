"""The search index port over files in a bucket: writes are records, searches run on a copy in SQLite."""

import base64
import logging
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from mats.adapters.files.follower import FRESH_S, Follower
from mats.adapters.files.store import Generation, Record, Store
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.entries import (
    drop_tombstones,
    read_ids,
    read_revisions,
    renew_terms,
    to_current_schema,
    write,
)
from mats.adapters.sqlite.index import SqliteIndex
from mats.adapters.sqlite.profiles import to_blob
from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.search.lookups import Vector
from mats.ports import Stored

LOGGER = logging.getLogger("mats")


class IndexCopy:
    """The entries of a generation in a file of SQLite; what is searched is loaded at the first search."""

    def __init__(self, path: Path, *, encoder: str) -> None:
        self._path, self._encoder = path, encoder
        to_current_schema(path)
        self.database = Database(path, scratch=True)
        renew_terms(self.database)

    @cached_property
    def index(self) -> SqliteIndex:
        return SqliteIndex(self.database, encoder=self._encoder)

    def apply(self, records: Sequence[Record]) -> None:
        with self.database.writing(durable=False) as connection:
            for record in records:
                try:
                    entries = [
                        Stored(Profile.model_validate_json(text), _vector(v)) for text, v in record.get("put", ())
                    ]
                    purged = [Id(str(id)) for id in record.get("purge", ())]
                except (ValueError, TypeError) as error:  # the nightly comparison writes what is missing
                    LOGGER.error("a record of the index is left out, because it cannot be read: %s", error)
                    continue
                for entry in entries:
                    write(connection, entry)
                drop_tombstones(connection, purged)

    def file(self) -> Path:
        with self.database.reading() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self._path

    def close(self) -> None:
        self.database.close()


def _vector(text: str | None) -> Vector | None:
    return None if text is None else array("f", base64.b64decode(text))


def as_record(entries: Sequence[Stored]) -> Record:
    """The record that writes these entries."""
    blobs = [to_blob(entry.vector) for entry in entries]
    vectors = [None if blob is None else base64.b64encode(blob).decode() for blob in blobs]
    return {"put": [[e.profile.model_dump_json(), each] for e, each in zip(entries, vectors, strict=True)]}


P = ParamSpec("P")
R = TypeVar("R")


def _on_copy(search: Callable[Concatenate[SqliteIndex, P], R]) -> "Callable[Concatenate[FilesIndex, P], R]":
    """The same search on the copy as it is now."""

    def search_copy(self: "FilesIndex", /, *args: P.args, **options: P.kwargs) -> R:
        return search(self._follower().index, *args, **options)

    return search_copy


class FilesIndex:
    """Searches a copy of the current generation that is some seconds old; writes to every generation of `writable`."""

    name = SqliteIndex.name

    def __init__(
        self,
        store: Store,
        writable: Callable[[], Sequence[Generation]],
        *,
        encoder: str,
        online: Store | None = None,
        fresh_s: float = FRESH_S,
    ) -> None:
        """`online` is the store for catching up within an answer; makes no call."""
        self._store, self._writable = store, writable
        self._follower = Follower(store, partial(IndexCopy, encoder=encoder), online=online, fresh_s=fresh_s)

    def put(self, entries: Sequence[Stored]) -> None:
        """Searches see it when their copy catches up."""
        self._append(as_record(entries) if entries else {})

    def purge(self, ids: Collection[Id]) -> None:
        self._append({"purge": list(ids)} if ids else {})

    def _append(self, record: Record) -> None:
        for target in self._writable() if record else ():
            self._store.append(target.name, record)

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        return read_ids(self._follower(fresh=True).database, after)

    def revisions(self, ids: Collection[Id]) -> Mapping[Id, int]:
        return read_revisions(self._follower(fresh=True).database, ids)

    lexical = _on_copy(SqliteIndex.lexical)
    exact = _on_copy(SqliteIndex.exact)
    count = _on_copy(SqliteIndex.count)
    neural = _on_copy(SqliteIndex.neural)
    bm25_of = _on_copy(SqliteIndex.bm25_of)
    cosine_of = _on_copy(SqliteIndex.cosine_of)
    fetch = _on_copy(SqliteIndex.fetch)
    names = _on_copy(SqliteIndex.names)
    spellings = _on_copy(SqliteIndex.spellings)
    namespaces = _on_copy(SqliteIndex.namespaces)
    page = _on_copy(SqliteIndex.page)

    def close(self) -> None:
        """Delete the copy."""
        self._follower.close()
