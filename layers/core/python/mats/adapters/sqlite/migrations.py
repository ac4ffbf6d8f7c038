"""The schema of the file, and the way from every released one to it. An older file is migrated in place."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources

SCHEMA_VERSION = 10
"""Of schema.sql, stored in the file as its `user_version`."""
FIRST_VERSION = 1
"""The schema of the first release."""
_STEPS: Mapping[int, tuple[str, ...]] = {
    3: ("ALTER TABLE profile_versions ADD COLUMN expires_at INTEGER",),
    4: ("ALTER TABLE profiles ADD COLUMN expires_at INTEGER",),
    5: (  # trust may be NULL
        "ALTER TABLE trust ADD COLUMN provider TEXT NOT NULL DEFAULT ''",
        "CREATE TABLE assigned (id TEXT PRIMARY KEY, trust INTEGER, provider TEXT NOT NULL DEFAULT '')",
        "INSERT INTO assigned SELECT id, trust, provider FROM trust",
        "DROP TABLE trust",
        "ALTER TABLE assigned RENAME TO trust",
    ),
    7: ("ALTER TABLE counter ADD COLUMN texts INTEGER NOT NULL DEFAULT 0",),
    9: ("DROP TABLE lexical",),  # a table of FTS5; SqliteIndex writes the terms of every entry
    10: ("ALTER TABLE counter ADD COLUMN arrays TEXT NOT NULL DEFAULT ''",),
}
"""The step to a version from the one before, where schema.sql, which runs afterwards, is not enough."""


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a file's schema; 0: it is empty."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> int:
    """Bring an empty or older file to SCHEMA_VERSION in one transaction; returns the version it had.

    A newer file is left as it is. Of several processes that migrate a file at once, the first does it.
    """
    if version_of(connection) >= SCHEMA_VERSION:
        return version_of(connection)
    with transaction(connection):
        before = version_of(connection)  # of a file that others cannot change any more
        if before < SCHEMA_VERSION:
            steps = [step for version, steps in _STEPS.items() if 0 < before < version for step in steps]
            for statement in (*steps, *_schema(), f"PRAGMA user_version = {SCHEMA_VERSION}"):
                connection.execute(statement)
    return before


def _schema() -> Iterator[str]:
    """The statements of schema.sql; `executescript` would commit the transaction."""
    statement = ""
    for line in resources.files(__package__).joinpath("schema.sql").read_text("utf-8").splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit the block's writes, or roll back if it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
