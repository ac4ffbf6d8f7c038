"""The rows of the search index: an entry for each profile, and the terms of those that are findable."""

import json
import sqlite3
from collections.abc import Mapping

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.postings import Document, pack
from mats.adapters.sqlite.profiles import to_blob
from mats.domain.profile.index_fields import FIELD_WEIGHTS, TEXTS, lexical_fields
from mats.domain.profile.profile import Profile
from mats.domain.ranking.bm25 import count_terms
from mats.ports import Stored

FINDABLE = "SELECT row, profile FROM entries WHERE findable"
NEW_KEY = "arrays = lower(hex(randomblob(16)))"
"""Of the counter: makes saved arrays unfit (saved.py)."""
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


def document_of(row: int, profile: str, weights: Mapping[str, float] = FIELD_WEIGHTS) -> Document:
    """The terms of an indexed profile."""
    return pack(row, count_terms(lexical_fields(Profile.model_validate_json(profile)), weights))


def renew_terms(database: Database) -> None:
    """Write the terms of every entry again if another release wrote them, or nobody."""
    current = "SELECT texts FROM counter"
    if database.rows(current)[0][0] == TEXTS:
        return
    with database.writing() as connection:
        if connection.execute(current).fetchone()[0] != TEXTS:  # else another process has done it in the meantime
            connection.execute("DELETE FROM lexical")
            for row, profile in connection.execute(FINDABLE).fetchall():
                connection.execute(_INSERT_TERMS, document_of(row, profile))
            connection.execute(f"UPDATE counter SET texts = ?, {NEW_KEY}", (TEXTS,))
