"""One SQLite file in WAL mode: connections, transactions, its schema, and errors with a remedy."""

import queue
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

from mats.adapters.sqlite import home
from mats.domain.errors import DependencyFailed, StorageUnusable

SCHEMA_VERSION = 21  # Of schema.sql, stored in the file as its `user_version`
_BUSY_MS = 10_000
_PAUSE_S = 0.01
_CACHE_KIB = 4_096
_DAMAGED = (
    "{} is damaged or not a mats registry; save what `mats export FILE` still reads, move it away, and restore a copy: "
    "a backup with `mats restore`, or that file with `mats import --with-trust`"
)


class Readable(Protocol):
    """A source of reads: the file, or one connection to it."""

    def reading(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection to read with.

        Raises StorageUnusable: an operator has to repair the file or the disk. DependencyFailed: another process keeps
        a lock for too long; safe to retry.
        """

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[Any]:
        """Every row of a query. Raises as `reading` does."""
        with self.reading() as connection:
            return connection.execute(query, parameters).fetchall()


class Database(Readable):
    """The file and this process's connections to it. Safe to share between threads."""

    def __init__(self, path: Path, *, scratch: bool = False) -> None:
        """Open the file, or create it; a `scratch` one is a copy that need not survive a power cut.

        Raises StorageUnusable: it cannot be opened, is damaged, or has another schema.
        """
        self.path = path
        self.failure = ""  # Why the last write was not stored; empty if it was
        # with FULL, an acknowledged write survives a power cut
        self._durable, self._other = ("OFF", "OFF") if scratch else ("FULL", "NORMAL")
        self._opened: list[sqlite3.Connection] = []
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        with self.error_translation():
            home.prepare(path)
        try:
            with self.reading() as connection:
                self._prepare(connection)
        except BaseException:
            self.close()
            raise

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if version_of(connection) == 0:
            with transaction(connection):
                if version_of(connection) == 0:  # else another process has created it in the meantime
                    for statement in (*schema_statements(), f"PRAGMA user_version = {SCHEMA_VERSION}"):
                        connection.execute(statement)
        if problem := schema_problem(version_of(connection)):
            raise StorageUnusable(f"{self.path} {problem}")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The idle connection used last, or a new one if none is idle."""
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = self.connect()
        try:
            with self.error_translation():
                yield connection
        finally:
            self._idle.put(connection)

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """An atomic transaction, durable when the block ends. Raises as `reading` does.

        One that is not `durable` survives the end of the process, but a power cut only with the next durable one; it
        saves the wait for the disk where a queued event repeats what was lost.
        """
        try:
            with self.reading() as connection:
                connection.execute(f"PRAGMA synchronous = {self._durable if durable else self._other}")
                with transaction(connection):
                    yield connection
        except StorageUnusable as error:
            self.failure = str(error)
            raise
        self.failure = ""

    def check(self) -> None:
        """Write again if the last write was not stored. Raises StorageUnusable: it still cannot be."""
        if self.failure:
            with self.writing() as connection:
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def verify(self) -> None:
        """Read every page. Raises StorageUnusable: one is damaged, which a search may not meet for long."""
        if self.rows("PRAGMA quick_check(1)") != [("ok",)]:
            raise StorageUnusable(_DAMAGED.format(self.path))

    @contextmanager
    def rolled_back(self) -> Iterator["OneConnection"]:
        """A transaction that is never committed: no other connection sees its writes, and a crash leaves none.

        It locks out other writers, who wait. Raises as `reading` does.
        """
        connection = self.connect()
        inside = OneConnection(self, connection)
        try:
            with self.error_translation():
                connection.execute("BEGIN IMMEDIATE")
            yield inside
        finally:
            inside.close()
            if connection in self._opened:
                self._opened.remove(connection)

    def connect(self) -> sqlite3.Connection:
        """A connection owned by the caller; `close` closes it as well."""
        with self.error_translation():
            connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._opened.append(connection)
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
            _use_wal(connection)
            connection.execute(f"PRAGMA synchronous = {self._durable}")
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        return connection

    def watch(self) -> "Watch":
        """A watch over the file, on a connection of its own."""
        return Watch(self, self.connect())

    def close(self) -> None:
        """Close every connection this process has opened."""
        while self._opened:
            self._opened.pop().close()
        self._idle = queue.LifoQueue()

    @contextmanager
    def error_translation(self) -> Iterator[None]:
        """Translate errors of SQLite and the operating system to errors with a remedy."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._translate(error) from error
        except OSError as error:
            reason = "it is a file" if isinstance(error, FileExistsError) else error.strerror or error
            raise StorageUnusable(f"{self.path.parent} cannot be used ({reason}): choose another MATS_HOME") from error

    def _translate(self, error: sqlite3.Error) -> DependencyFailed:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        where = self.path
        match code:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return DependencyFailed(f"{where} is held by another process; try again")
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return StorageUnusable(_DAMAGED.format(where))
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                return StorageUnusable(f"{where} is read-only; make it writable or choose another MATS_HOME")
            case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
                return StorageUnusable(
                    f"{where} cannot grow: the disk is full or failing ({error}); free some space and run again. "
                    "Every acknowledged write is safe"
                )
            case sqlite3.SQLITE_CANTOPEN:
                return StorageUnusable(f"{where} cannot be opened; check the folder's permissions or set MATS_HOME")
            case _:
                return StorageUnusable(f"{where}: {error}")


class OneConnection(Readable):
    """Reads over one connection; a lock serializes threads on it."""

    def __init__(self, database: Database, connection: sqlite3.Connection) -> None:
        self._database, self._connection = database, connection
        self._lock, self._is_closed = threading.Lock(), False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Raises DependencyFailed also after `close`, for example while a late search was still waiting."""
        with self._lock, self._database.error_translation():
            if self._is_closed:
                raise DependencyFailed("the transaction has ended")
            yield self._connection

    def close(self) -> None:
        """Close the connection, which rolls back a transaction."""
        with self._lock:
            self._is_closed = True
            self._connection.close()


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode; retry while another process switches, to which SQLite's own busy timeout does not apply."""
    deadline = time.monotonic() + _BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)


class Watch(OneConnection):
    """Detects writes of other connections, in this process and others. Safe to share between threads."""

    def version(self) -> int:
        """A number that changes with every write, except those through this watch; cheap to read."""
        return int(self.rows("PRAGMA data_version")[0][0])

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that does not change this watch's version. Raises as `reading` does."""
        with self.reading() as connection, transaction(connection):
            yield connection


def version_of(connection: sqlite3.Connection) -> int:
    """The version of a file's schema; 0: it is empty."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def schema_problem(version: int) -> str:
    """Why a file with this schema cannot be used, and what to do; empty if it can be."""
    if version == SCHEMA_VERSION:
        return ""
    to_do = (
        "install that version or a newer one"
        if version > SCHEMA_VERSION
        else "run `mats export` of that version and `mats import` of this one into another home"
    )
    return f"was written by another version of mats (schema {version}, this one reads {SCHEMA_VERSION}); {to_do}"


def schema_statements() -> Iterator[str]:
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
