"""Backup and restore of the whole file. A crash at any point leaves the old file or the new one, both complete."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from mats.adapters.sqlite import home
from mats.adapters.sqlite.database import Database, schema_problem, version_of
from mats.domain.errors import DependencyFailed, Fault, NotPossible, StorageUnusable

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

    Raises:
        DependencyFailed: another process writes the same file.
        StorageUnusable: the file cannot be written, or is not sound.
    """
    with _writable(file), home.replacing(file) as partial:
        with database.error_translation(), closing(_connect(database.path)) as connection:
            connection.execute("VACUUM INTO ?", (str(partial),))
        with closing(_connect(partial)) as connection:
            return _verify(connection, partial)


def restore(file: Path, target: Path, *, stamp: str, force: bool = False) -> Restored:
    """Replace the database at `target` by a backup.

    Args:
        file: A backup, or the database of another registry.
        target: The database; its folder is created if it is missing.
        stamp: For the name of what is there now, such as a time.
        force: Replace a registry that is not empty, after a backup of it beside the target.

    Raises:
        NotPossible: the file is no sound registry that this version reads; or the target is not empty.
        DependencyFailed: another process uses the target.
        StorageUnusable: the folder cannot be written.
    """
    with closing(_open_backup(file)) as source, _writable(target):
        home.make_folder(target.parent)
        with _alone(target), home.replacing(target) as partial:
            source.execute("VACUUM INTO ?", (str(partial),))
            contents = _adopt(partial)
            return Restored(contents, _set_aside(target, stamp, force=force))


def _adopt(partial: Path) -> Contents:
    """Verify a copy, and end the leases of the processes that it was copied from."""
    with closing(_connect(partial)) as connection:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("UPDATE events SET holder = NULL, due = 0 WHERE holder IS NOT NULL")
        return _verify(connection, partial)


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
    try:
        yield
    finally:
        if lock:
            lock.close()


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
            _verify(connection, file)
            return connection
        except (sqlite3.Error, StorageUnusable) as error:
            connection.close()
            problem = str(error)
    raise NotPossible([Fault("FILE", f"{file} cannot be restored: {problem}")])


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None, timeout=10)


def _verify(connection: sqlite3.Connection, file: Path) -> Contents:
    """Count the content of a file.

    Raises:
        StorageUnusable: it is damaged, no registry, or has another schema.
        sqlite3.Error: it cannot be read.
    """
    version = version_of(connection)
    if version == 0:
        raise StorageUnusable("it is no registry of mats")
    if problem := schema_problem(version):
        raise StorageUnusable(f"it {problem}")
    [(found,), *_] = connection.execute("PRAGMA integrity_check").fetchall()
    if found != "ok":
        raise StorageUnusable(f"{file} is damaged: {found}")
    counts = [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _COUNTED]
    return Contents._make([*counts, version])
