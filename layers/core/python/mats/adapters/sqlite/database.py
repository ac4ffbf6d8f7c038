"""One SQLite file in WAL mode, a connection per task at hand, and errors that say what to do."""

import queue
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from mats.domain.errors import DependencyFailed, StorageUnusable

_BUSY_MS = 10_000
_PAUSE_S = 0.01
_CACHE_KIB = 4_096
SCHEMA_VERSION = 1
"""Grows with schema.sql."""


class Database:
    """The file and this process's connections to it. Safe to share between threads."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it.

        Raises:
            StorageUnusable: it cannot be opened, is damaged, or was written by another version.
        """
        self.path = path
        self._opened: list[sqlite3.Connection] = []
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        with self.explained():
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._borrowed() as connection:
            self._prepare(connection)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if found == 0:
            schema = resources.files(__package__).joinpath("schema.sql").read_text("utf-8")
            connection.executescript(f"BEGIN IMMEDIATE;\n{schema}\nPRAGMA user_version = {SCHEMA_VERSION};\nCOMMIT;")
        elif found != SCHEMA_VERSION:
            raise StorageUnusable(
                f"{self.path} was written by another version of mats (schema {found}, this one has {SCHEMA_VERSION}); "
                "move it away and import again"
            )

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection to read with.

        Raises:
            StorageUnusable: the file cannot be used until somebody mends it.
            DependencyFailed: another process holds it too long; safe to retry.
        """
        with self._borrowed() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is on disk when the block ends, or none of it. Raises as `reading` does."""
        with self._borrowed() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def connect(self) -> sqlite3.Connection:
        """A connection of the caller's own; it is closed with the others."""
        with self.explained():
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._opened.append(connection)
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            _use_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")  # an acknowledged write survives a power cut, too
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        return connection

    def watch(self) -> "Watch":
        """Something that notices when anybody writes."""
        return Watch(self, self.connect())

    def close(self) -> None:
        """Close every connection this process has opened."""
        while self._opened:
            self._opened.pop().close()
        self._idle = queue.LifoQueue()

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        """The connection used last and idle now, so that there are only as many as are needed at once."""
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = self.connect()
        try:
            with self.explained():
                yield connection
        finally:
            self._idle.put(connection)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Errors of SQLite and the system as errors of ours that say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._meaning(error) from error
        except OSError as error:
            raise StorageUnusable(f"{self.path.parent} cannot be used: {error.strerror or error}") from error

    def _meaning(self, error: sqlite3.Error) -> DependencyFailed:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        where = self.path
        match code:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return DependencyFailed(f"{where} is held by another process; try again")
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return StorageUnusable(
                    f"{where} is damaged or not a mats registry; restore a copy, or move it away and import again"
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                return StorageUnusable(f"{where} is read-only; make it writable or choose another MATS_HOME")
            case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
                return StorageUnusable(
                    f"{where} cannot grow: the disk is full or failing ({error}); free some space and run again, "
                    "whatever was acknowledged is safe"
                )
            case sqlite3.SQLITE_CANTOPEN:
                return StorageUnusable(f"{where} cannot be opened; check the folder's permissions or set MATS_HOME")
            case _:
                return StorageUnusable(f"{where}: {error}")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode, and wait for whoever else is switching or leaving: SQLite's own busy timeout does not."""
    deadline = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)


class Watch:
    """Notices what this process or another has written. Not safe to share between threads without a lock."""

    def __init__(self, database: Database, connection: sqlite3.Connection) -> None:
        self._database, self._connection = database, connection

    def version(self) -> int:
        """A number that is another one after every write; next to free to ask for."""
        with self._database.explained():
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
