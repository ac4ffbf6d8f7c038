"""Backup of the whole file, and restore of all of it but sources. A crash leaves no half of either."""

import json
import math
import sqlite3
import struct
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from mats.adapters.sqlite import home
from mats.adapters.sqlite.database import Database, schema_problem, version_of
from mats.adapters.sqlite.receipts import receipt_of
from mats.adapters.sqlite.registry import Announcer, assign, read_snapshot, register
from mats.domain.capability.registration import Registration
from mats.domain.errors import CapabilityError, DependencyFailed, Fault, NotPossible, StorageUnusable
from mats.domain.learning.outcome import Event, unpack_vector
from mats.domain.profile.profile import parse_profile


class Contents(NamedTuple):
    """The rows of a file that a restore brings back."""

    capabilities: int
    trust: int
    receipts: int
    reports: int


def back_up(database: Database, file: Path) -> Contents:
    """Write everything as it is now to a file, and verify it. Others may read and write meanwhile.

    Content that was deleted is not in the file, as it may be in a copy of the database.

    Raises DependencyFailed: another process writes the same file. StorageUnusable: the file cannot be written, or is
    not sound.
    """
    with _writable(file), home.replacing(file) as partial:
        with database.reading() as connection:
            connection.execute("VACUUM INTO ?", (str(partial),))
        with closing(sqlite3.connect(partial)) as connection:
            return _verify(connection)


@contextmanager
def open_backup(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a backup, or to the database of another registry; nothing is written, and no code of it runs.

    Raises NotPossible: it is no sound registry that this version reads.
    """
    problem = "" if file.is_file() else "no such file"
    if not problem:
        uri = f"file:{quote(str(file.absolute()))}?mode=ro"
        has_wal = file.with_name(file.name + "-wal").exists()
        with closing(sqlite3.connect(uri if has_wal else f"{uri}&immutable=1", uri=True)) as connection:
            try:
                connection.execute("PRAGMA trusted_schema = OFF")
                _verify(connection)
            except (sqlite3.Error, StorageUnusable) as error:
                problem = str(error)
            else:
                yield connection
                return
    raise NotPossible([Fault("", f"{file} cannot be restored: {problem}; give a file that `mats backup` wrote")])


def restore(backup: sqlite3.Connection, database: Database, announce: Announcer) -> Contents:
    """Add registrations, trust, profiles, receipts and reports to an empty registry, in one transaction.

    Every capability is announced, so that its profile is brought up to date and indexed. What is held stays held.

    Raises NotPossible: the registry is not empty, or a row of the backup is not as mats writes it.
    """
    with database.writing() as target:
        target.execute("DELETE FROM profiles WHERE status = 'deleted'")  # of what was here and removed
        target.execute("DELETE FROM profile_versions WHERE id NOT IN (SELECT id FROM profiles)")
        if any(_count(target)):
            raise NotPossible([Fault("", f"{database.path} is not empty: choose another --home, or move it away")])
        try:
            for entry in read_snapshot(backup):
                if isinstance(entry, tuple):
                    assign(target, *entry)
                else:
                    register(target, announce, Registration.parse(entry))
            for table in _DECODED:
                _copy(table, backup, target)
            for query, problem in _CHECKS:
                if found := target.execute(query).fetchone():
                    raise ValueError(f"{problem}: {found[0]}")
            target.execute("UPDATE profiles SET indexed_rev = 0 WHERE status != 'deleted'")
            for (id,) in target.execute(_REMOVED).fetchall():
                announce(target, "Registry", "REMOVE", id)
        except _ODD as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            message = f"the backup cannot be restored: a row is not as mats writes it ({reason})"
            raise NotPossible([Fault("", message)]) from error
        return _count(target)


_ODD = (CapabilityError, AttributeError, LookupError, RecursionError, TypeError, ValueError, struct.error)
"""Errors of decoding a row that mats does not write."""

_CHECKS = (
    ("SELECT id FROM profiles WHERE length(vector) != (SELECT max(length(vector)) FROM profiles)", "a shorter vector"),
    (
        "SELECT one.id FROM profile_versions one LEFT JOIN profiles USING (id) "
        "WHERE one.rev >= coalesce(profiles.rev, 0) OR one.rev < 1 OR profiles.rev > 1 << 53",
        "a version that is not before its profile",
    ),
)
"""Queries of rows that fit no other, and what is wrong with them."""
_REMOVED = "SELECT id FROM profiles WHERE status != 'deleted' AND id NOT IN (SELECT id FROM registry)"

_DECODED: Mapping[str, Callable[..., object]] = {
    "profiles": lambda id, rev, _, status, body, vector, *more: _decode_profile(body, (id, rev, status), vector),
    "profile_versions": lambda id, rev, body, *more: _decode_profile(body, (id, rev)),
    "receipts": lambda *row: _decode_receipt(row[:-1]),
    "reports": lambda *row: _decode_receipt(row[:-2]),
    "outcomes": lambda query_id, id, events: [Event(event) for event in json.loads(events)],
}
"""What readers make of a row of each table that is copied."""

_TYPES = {"TEXT": str, "INTEGER": int, "REAL": float, "BLOB": bytes}


def _decode_profile(body: str, columns: tuple[Any, ...], vector: bytes | None = None) -> None:
    profile = parse_profile(body)
    if columns != (profile.id, profile.rev, profile.status)[: len(columns)]:
        raise ValueError(f"the profile {profile.id} is not that of its row")
    _check_vector(array("f", vector or b""))


def _decode_receipt(row: tuple[Any, ...]) -> None:
    _check_vector(unpack_vector(receipt_of(row).vector or b""))


def _check_vector(vector: Sequence[float]) -> None:
    if not math.isfinite(sum(vector)):
        raise ValueError("the vector is not finite")


def _copy(table: str, backup: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Copy the rows of a table whose columns have the types of ours."""
    types = dict(target.execute("SELECT name, type FROM pragma_table_info(?)", (table,)))
    columns = ", ".join(types)
    insert = f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(types))})"
    for row in backup.execute(f"SELECT {columns} FROM {table}"):
        for value, type in zip(row, types.values(), strict=True):
            if value is not None and not isinstance(value, _TYPES[type]):
                raise TypeError(f"{value!r} in {table}")
        _DECODED[table](*row)
        target.execute(insert, row)


def _verify(connection: sqlite3.Connection) -> Contents:
    """The content of a file.

    Raises StorageUnusable: it is damaged, no registry, or has another schema. sqlite3.Error: it cannot be read.
    """
    version = version_of(connection)
    if version == 0:
        raise StorageUnusable("it is no registry of mats")
    if problem := schema_problem(version):
        raise StorageUnusable(f"it {problem}")
    ordinary = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
    tables = {name for (name,) in connection.execute(ordinary)}
    if missing := {"registry", "trust", *_DECODED} - tables:
        raise StorageUnusable(f"it has no table {min(missing)}")
    [(found,), *_] = connection.execute("PRAGMA integrity_check").fetchall()
    if found != "ok":
        raise StorageUnusable(f"it is damaged: {found}")
    return _count(connection)


def _count(connection: sqlite3.Connection) -> Contents:
    tables = ("registry", "trust", "receipts", "reports")
    return Contents(*(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables))


@contextmanager
def _writable(file: Path) -> Iterator[None]:
    try:
        yield
    except home.WriteInProgress as error:
        raise DependencyFailed(f"{file} is being written by another process; try again") from error
    except (OSError, sqlite3.Error) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise StorageUnusable(f"{file} cannot be written: {reason}") from error
