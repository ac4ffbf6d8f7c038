"""The rows of the search index, an entry for each profile with the terms of those that are findable, and reindexing."""

import json
import sqlite3
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mats.adapters.sqlite.database import Database, Readable, schema_problem, version_of
from mats.adapters.sqlite.postings import pack
from mats.adapters.sqlite.profiles import to_blob
from mats.adapters.sqlite.registry import IN, as_json
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.index_fields import FIELD_WEIGHTS, TEXTS, count_terms, lexical_fields
from mats.domain.profile.index_keys import index_keys
from mats.domain.profile.profile import Profile
from mats.domain.text.words import has_spelling, stem, words
from mats.ports import Stored, Target

FINDABLE = "SELECT row, profile FROM entries WHERE findable"
_INSERT_STEM = "INSERT OR IGNORE INTO vocabulary (stem) VALUES (?)"
_INSERT_TERMS = "INSERT INTO lexical (row, length, terms) VALUES (?, ?, ?)"


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
        "tags": json.dumps(profile.filtered_tags),
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
        if not again and profile.findable:
            indexed = Profile.model_validate_json(before[3])
            same = index_keys(indexed) == index_keys(profile)
            if same and lexical_fields(indexed) == lexical_fields(profile):  # as if only its vector has changed
                return
        connection.execute("DELETE FROM lexical WHERE row = ?", (row,))
    if profile.findable and row is not None:
        _write_terms(connection, row, profile)


def _write_terms(connection: sqlite3.Connection, row: int, profile: Profile) -> None:
    fields = lexical_fields(profile)
    counts = count_terms(fields, FIELD_WEIGHTS)
    keys = dict.fromkeys(index_keys(profile), 1.0)  # beside the terms of words, which have no such signs
    document = pack(row, counts._replace(frequencies={**counts.frequencies, **keys}))
    stems = {stem(word) for text in fields.values() for word in words(text) if has_spelling(word)}
    connection.executemany(_INSERT_STEM, [(each,) for each in sorted(stems)])
    connection.execute(_INSERT_TERMS, document)


def renew_terms(database: Database) -> None:
    """Write the terms of every entry again if another release wrote them, or nobody."""
    current = "SELECT texts FROM counter"
    if database.rows(current)[0][0] == TEXTS:
        return
    with database.writing() as connection:
        if connection.execute(current).fetchone()[0] != TEXTS:  # else another process has done it in the meantime
            connection.execute("DELETE FROM lexical")
            for row, profile in connection.execute(FINDABLE).fetchall():
                _write_terms(connection, row, Profile.model_validate_json(profile))
            connection.execute("UPDATE counter SET texts = ?", (TEXTS,))


_TABLE = "CREATE TABLE IF NOT EXISTS renewal (since INTEGER NOT NULL)"


def read_ids(source: Readable, after: Id | None) -> Iterator[Id]:
    """As `SearchIndex.ids`."""
    rows = source.rows("SELECT id FROM entries WHERE id > ? ORDER BY id", (after or "",))
    yield from (Id(id) for (id,) in rows)


def read_revisions(source: Readable, ids: Collection[Id]) -> Mapping[Id, int]:
    """As `SearchIndex.revisions`."""
    return dict(source.rows(f"SELECT id, rev FROM entries WHERE id IN {IN}", (as_json(ids),)))


def drop_tombstones(connection: sqlite3.Connection, ids: Collection[Id]) -> None:
    query = f"DELETE FROM entries WHERE NOT findable AND id IN {IN} RETURNING change"
    deleted = connection.execute(query, (as_json(ids),)).fetchall() if ids else []
    if deleted:
        connection.execute("UPDATE counter SET purge = max(purge, ?)", max(deleted))


def to_current_schema(path: Path) -> None:
    """Where a file is of another schema, replace it by one of this release with the same entries."""
    if not path.exists():
        return
    with closing(sqlite3.connect(path)) as there:
        if not schema_problem(version_of(there)):
            return
        rows = there.execute("SELECT profile, vector FROM entries ORDER BY row").fetchall()
    path.unlink()
    renewed = Database(path, scratch=True)
    with renewed.writing(durable=False) as connection:
        for profile, blob in rows:
            write(connection, Stored(Profile.model_validate_json(profile), None if blob is None else array("f", blob)))
    renewed.close()


@dataclass(frozen=True, slots=True)
class SqliteGenerations:
    """The port `Generations` over a file with one index; entries written since `begin` count as the new generation."""

    database: Database
    name: str

    def current(self) -> str | None:
        return self.name

    def begin(self) -> Target:
        """The same index; an interrupted reindex is resumed."""
        with self.database.writing() as connection:
            connection.execute(_TABLE)
            connection.execute(
                "INSERT INTO renewal SELECT change FROM counter WHERE NOT EXISTS (SELECT * FROM renewal)"
            )
        return Target(self.name, "", filling=True)

    def fill(self, target: Target, entries: Sequence[Stored]) -> None:
        """Write revisions again, including unchanged ones."""
        with self.database.writing() as connection:
            for entry in entries:
                write(connection, entry, again=True)

    def revisions(self, target: Target, ids: Collection[Id]) -> Mapping[Id, int]:
        """Of the entries written since `begin`."""
        query = f"SELECT id, rev FROM entries WHERE change > (SELECT since FROM renewal) AND id IN {IN}"
        return dict(self.database.rows(query, (as_json(ids),)))

    def promote(self, target: Target) -> None:
        with self.database.writing() as connection:
            connection.execute("DELETE FROM renewal")

    def roll_back(self) -> Target:
        message = "the local index is rewritten in place, so there is no earlier one: `mats reindex` writes it again"
        raise RequestInvalid([Fault("", message)])

    def retire(self) -> Sequence[str]:
        """A no-op: there is no other index."""
        return ()
