"""Backup and restore of the whole file. A crash at any point leaves the old file or the new one, both complete."""

import functools
import json
import math
import shlex
import sqlite3
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from mats.adapters.sqlite import home
from mats.adapters.sqlite.database import (
    SCHEMA_VERSION,
    Database,
    schema_problem,
    schema_statements,
    transaction,
    version_of,
)
from mats.adapters.sqlite.sources import parse_source
from mats.domain.errors import DependencyFailed, Fault, NotPossible, StorageUnusable
from mats.domain.learning.outcome import unpack_vector
from mats.domain.profile.profile import Profile

_COUNTED = ("registry", "trust", "profiles", "profile_versions", "events")


class Contents(NamedTuple):
    """The content of a file: numbers of rows, and the version of its schema."""

    capabilities: int
    trust: int
    profiles: int
    versions: int
    changes: int
    schema: int

    @property
    def is_empty(self) -> bool:
        return not any(self[:-1])


class Restored(NamedTuple):
    """The restored content, and the path of the registry that it replaced, if that held anything."""

    contents: Contents
    previous: Path | None


def back_up(database: Database, file: Path) -> Contents:
    """Write everything as it is now to a file, and verify it. Others may read and write meanwhile.

    Raises DependencyFailed: another process writes the same file. StorageUnusable: the file cannot be written, or is
    not sound.
    """
    with _writable(file), home.replacing(file) as partial:
        with database.error_translation(), closing(_connect(database.path)) as connection:
            connection.execute("VACUUM INTO ?", (str(partial),))
        with closing(_connect(partial)) as connection:
            return _verify(connection, partial)


def restore(
    file: Path, target: Path, *, stamp: str, force: bool = False, confirm: Callable[[Sequence[str]], bool] = bool
) -> Restored:
    """Replace the database at `target` by a backup.

    Args:
        file: A backup, or the database of another registry.
        target: The database; its folder is created if it is missing.
        stamp: For the name of what is there now, such as a time.
        force: Replace a registry that is not empty, after a backup of it beside the target.
        confirm: Asked with the sources in the backup, which `mats sync` reads and whose commands it starts.

    Raises:
        NotPossible: the file is no sound registry that this version reads; or the target is not empty.
        DependencyFailed: another process uses the target.
        StorageUnusable: the folder cannot be written.
    """
    with closing(_open_backup(file)) as source, _writable(target):
        home.make_folder(target.parent)
        with _alone(target), home.replacing(target) as partial:
            contents = _copy(source, partial)
            if (sources := _commands(partial)) and not confirm(sources):
                raise NotPossible([Fault("", f"{file} was not restored: its sources were not confirmed")])
            return Restored(contents, _set_aside(target, stamp, force=force))


def _copy(source: sqlite3.Connection, partial: Path) -> Contents:
    """Copy the rows into a schema of our own: nothing else of the file is taken over, and odd rows are refused.

    The terms of the index are left out, and written again at the first start. Leases of other processes end.
    """
    statements = list(schema_statements())
    tables = [each for each in statements if "CREATE TABLE" in each]
    with closing(_connect(partial)) as target:
        target.execute("PRAGMA journal_mode = MEMORY")
        with transaction(target):
            for statement in tables:
                target.execute(statement)
            check = _RowCheck()
            for name, columns in _tables(target).items():
                if name not in _DERIVED:
                    listed = ", ".join(columns)
                    rows = source.execute(f"SELECT {listed} FROM {name}")
                    places = ", ".join("?" * len(columns))
                    insert = f"INSERT INTO {name} ({listed}) VALUES ({places})"
                    target.executemany(insert, (check(name, columns, row) for row in rows))
            for name, most in source.execute("SELECT name, seq FROM sqlite_sequence WHERE typeof(seq) = 'integer'"):
                target.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (most, name))
            target.execute("UPDATE counter SET texts = 0")
            target.execute("UPDATE events SET holder = NULL, due = 0 WHERE holder IS NOT NULL")
            for statement in statements:
                if statement not in tables and "INSERT INTO counter" not in statement.splitlines()[-1]:
                    target.execute(statement)
            target.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return _verify(target, partial)


def _tables(connection: sqlite3.Connection) -> dict[str, dict[str, str]]:
    """The columns of each ordinary table, with their types."""
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    listed = "SELECT name, type FROM pragma_table_xinfo(?) WHERE NOT hidden"
    return {name: dict(connection.execute(listed, (name,)).fetchall()) for (name,) in found}


@functools.cache
def _our_tables() -> dict[str, dict[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in schema_statements():
            connection.execute(statement)
        return _tables(connection)


_DERIVED = ("lexical", "vocabulary")
_TYPES: Mapping[str, type | tuple[type, ...]] = {"TEXT": str, "INTEGER": int, "REAL": (int, float), "BLOB": bytes}
_JSON = frozenset("item assigned definition outcome audiences shown events words tags visible_to".split())
_PROFILES = ("body", "profile")


class _RowCheck:
    """Decodes rows as their readers will. Raises NotPossible for an odd one."""

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}

    def __call__(self, table: str, columns: Mapping[str, str], row: tuple[Any, ...]) -> tuple[Any, ...]:
        values = dict(zip(columns, row, strict=True))
        try:
            for name, value in values.items():
                if value is not None:
                    self._check(name, columns[name], value, values)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            where = f"a row of the table {table}"
            raise NotPossible(
                [Fault("", f"the backup cannot be restored: {where} is not as mats writes it")]
            ) from error
        return row

    def _check(self, name: str, type: str, value: Any, values: Mapping[str, Any]) -> None:
        typed = isinstance(value, _TYPES[type])
        if not typed:
            raise TypeError(name)
        if name in _JSON and type == "TEXT":
            json.loads(value)
        if name in ("item", "assigned") and not isinstance(json.loads(value), dict):
            raise TypeError(name)
        if name == "definition":
            parse_source(value)
        if name in _PROFILES and Profile.model_validate_json(value).id != values["id"]:
            raise ValueError(name)
        if name == "vector":
            encoder = values.get("encoder") or json.loads(values["body"])["encoder"]
            numbers = unpack_vector(value) if "query_id" in values else array("f", value)
            length = self._lengths.setdefault(encoder, len(numbers))
            if length != len(numbers) or not math.isfinite(sum(numbers)):
                raise ValueError(name)


def _commands(partial: Path) -> list[str]:
    """What `mats sync` would start or read, for a person to agree to."""
    with closing(_connect(partial)) as connection:
        sources = [parse_source(text) for (text,) in connection.execute("SELECT definition FROM sources ORDER BY name")]
    return [f"{source.name} ({source.kind}): {shlex.join(source.location)}" for source in sources]


def _set_aside(target: Path, stamp: str, *, force: bool) -> Path | None:
    """Keep what is at the target under another name, and leave a file there that can be replaced."""
    if not target.exists():
        return None
    previous = target.with_name(f"mats.before-restore-{stamp}.db")
    try:
        with closing(_connect(target)) as connection:
            contents = _verify(connection, target) if version_of(connection) else None
            if contents and not contents.is_empty:
                _require(force, target, f"has {contents.capabilities:,} capabilities")
                with home.replacing(previous) as copy:
                    connection.execute("VACUUM INTO ?", (str(copy),))
            # without its WAL, which would be applied to the new file
            connection.execute("PRAGMA journal_mode = DELETE")
        return previous if contents and not contents.is_empty else None
    except (sqlite3.DatabaseError, StorageUnusable) as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise _in_use(target) from error
        _require(force, target, f"cannot be read ({error})")
        for suffix in ("-wal", "-shm", ""):
            part = target.with_name(target.name + suffix)
            if part.exists():
                part.replace(previous.with_name(previous.name + suffix))
        return previous


def _require(force: bool, target: Path, state: str) -> None:
    if not force:
        message = f"{target} {state}: choose another --home, or replace it with --force, which backs it up first"
        raise NotPossible([Fault("", message)])


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    try:
        lock = home.lock(target, alone=True)
    except home.HomeInUse as error:
        raise _in_use(target) from error
    with lock or nullcontext():
        yield


def _in_use(target: Path) -> DependencyFailed:
    return DependencyFailed(f"{target.parent} is in use by another process: stop `mats serve` and all others first")


@contextmanager
def _writable(file: Path) -> Iterator[None]:
    try:
        yield
    except home.WriteInProgress as error:
        raise DependencyFailed(f"{file} is being written by another process; try again") from error
    except (OSError, sqlite3.Error) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise StorageUnusable(f"{file} cannot be written: {reason}") from error


def _open_backup(file: Path) -> sqlite3.Connection:
    """A connection to a sound registry that this version reads; nothing is written there."""
    problem = "no such file" if not file.is_file() else ""
    if not problem:
        uri = f"file:{quote(str(file.absolute()))}?mode=ro"
        has_wal = file.with_name(file.name + "-wal").exists()
        connection = sqlite3.connect(uri if has_wal else f"{uri}&immutable=1", uri=True, isolation_level=None)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            _verify(connection, file)
            return connection
        except (sqlite3.Error, StorageUnusable) as error:
            connection.close()
            problem = str(error)
    raise NotPossible([Fault("", f"{file} cannot be restored: {problem}")])


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None, timeout=10)


def _verify(connection: sqlite3.Connection, file: Path) -> Contents:
    """Count the content of a file.

    Raises StorageUnusable: it is damaged, no registry, or has another schema. sqlite3.Error: it cannot be read.
    """
    version = version_of(connection)
    if version == 0:
        raise StorageUnusable("it is no registry of mats")
    if problem := schema_problem(version):
        raise StorageUnusable(f"it {problem}")
    tables = _tables(connection)
    if odd := next((name for name, columns in _our_tables().items() if tables.get(name) != columns), None):
        raise StorageUnusable(f"its table {odd} is missing or not as mats makes it")
    [(found,), *_] = connection.execute("PRAGMA integrity_check").fetchall()
    if found != "ok":
        raise StorageUnusable(f"{file} is damaged: {found}")
    counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _COUNTED]
    return Contents._make([*counts, version])
