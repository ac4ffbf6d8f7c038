"""Errors of the database file, each with a remedy in one line."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mats.adapters.sqlite.database import SCHEMA_VERSION, Database
from mats.domain.errors import DependencyFailed, StorageUnusable

OLD_TRUST = "DROP TABLE trust; CREATE TABLE trust (id TEXT PRIMARY KEY, trust INTEGER NOT NULL);"
"""Before version 5."""


def test_a_read_only_file_is_reported(tmp_path: Path, monkeypatch):
    Database(tmp_path / "mats.db").close()
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, **options: connect(f"file:{path}?mode=ro", uri=True, **options)
    )
    database = Database(tmp_path / "mats.db")
    with pytest.raises(StorageUnusable, match="read-only"), database.writing() as connection:
        connection.execute("DELETE FROM registry")
    database.close()


def test_a_file_locked_by_another_process_can_be_retried(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("mats.adapters.sqlite.database._BUSY_MS", 1)
    one, other = Database(tmp_path / "mats.db"), Database(tmp_path / "mats.db")
    with one.writing(), pytest.raises(DependencyFailed, match="try again") as refused, other.writing():
        pass
    assert not isinstance(refused.value, StorageUnusable)
    one.close()
    other.close()


def test_opening_waits_for_a_file_being_created_by_another_process(tmp_path: Path, monkeypatch):
    maker = sqlite3.connect(tmp_path / "mats.db", isolation_level=None)
    maker.execute("BEGIN IMMEDIATE")
    maker.execute("CREATE TABLE half_made (n)")
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if maker.in_transaction:
            maker.execute("ROLLBACK")

    monkeypatch.setattr("mats.adapters.sqlite.database.time.sleep", pause)
    Database(tmp_path / "mats.db").close()
    assert pauses
    maker.close()


def test_the_wait_for_a_file_being_created_has_a_timeout(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("mats.adapters.sqlite.database._BUSY_MS", 1)
    maker = sqlite3.connect(tmp_path / "mats.db", isolation_level=None)
    maker.execute("BEGIN IMMEDIATE")
    with pytest.raises(DependencyFailed, match="try again"):
        Database(tmp_path / "mats.db")
    maker.close()


def test_a_block_that_raises_leaves_nothing_behind(tmp_path: Path):
    database = Database(tmp_path / "mats.db")

    def half_done() -> None:
        with database.writing() as connection:
            connection.execute("INSERT INTO trust (id, trust) VALUES ('a/b', 1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half_done()
    with database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM trust").fetchone() == (0,)
    database.close()


def test_a_write_waits_for_the_disk_unless_an_event_would_repeat_it(tmp_path: Path):
    database = Database(tmp_path / "mats.db")
    synchronous = []
    for durable in (True, False, True):
        with database.writing(durable=durable) as connection:
            synchronous += connection.execute("PRAGMA synchronous").fetchone()
    assert synchronous == [2, 1, 2]  # FULL, NORMAL
    database.close()


def test_connections_are_used_again(tmp_path: Path):
    database = Database(tmp_path / "mats.db")
    for _ in range(50):
        with database.reading() as connection:
            connection.execute("SELECT 1")
    assert len(database._opened) == 1
    database.close()


def test_an_older_file_is_migrated_and_keeps_its_rows(tmp_path: Path):
    Database(tmp_path / "mats.db").close()
    old = sqlite3.connect(tmp_path / "mats.db", isolation_level=None)
    old.executescript(
        "ALTER TABLE counter DROP COLUMN texts; ALTER TABLE counter DROP COLUMN arrays; DROP TABLE answers; "
        "DROP INDEX profile_versions_expiry; ALTER TABLE profile_versions DROP COLUMN expires_at; "
        "DROP INDEX profiles_expiry; ALTER TABLE profiles DROP COLUMN expires_at; "
        f"{OLD_TRUST} INSERT INTO trust VALUES ('a/b', 1); PRAGMA user_version = 1"
    )
    old.close()
    database = Database(tmp_path / "mats.db")
    with database.reading() as connection:
        assert connection.execute("SELECT * FROM trust").fetchall() == [("a/b", 1, "")]
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (0,)
        assert connection.execute("SELECT expires_at FROM profile_versions").fetchall() == []
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert connection.execute("SELECT count(*) FROM counter").fetchone() == (1,)
    database.close()


def test_two_processes_that_migrate_a_file_at_once_both_open_it(tmp_path: Path):
    for number in range(5):
        file = tmp_path / f"{number}.db"
        Database(file).close()
        old = sqlite3.connect(file, isolation_level=None)
        old.executescript(
            "ALTER TABLE counter DROP COLUMN texts; ALTER TABLE counter DROP COLUMN arrays; "
            "DROP INDEX profile_versions_expiry; ALTER TABLE profile_versions DROP COLUMN expires_at; "
            "DROP INDEX profiles_expiry; ALTER TABLE profiles DROP COLUMN expires_at; "
            f"{OLD_TRUST} INSERT INTO trust VALUES ('a/b', 1); PRAGMA user_version = 2"
        )
        old.close()
        with ThreadPoolExecutor(4) as threads:
            for database in threads.map(Database, [file] * 4):
                assert database.rows("SELECT id, trust, provider FROM trust") == [("a/b", 1, "")]
                database.close()


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path):
    newer = sqlite3.connect(tmp_path / "mats.db", isolation_level=None)
    newer.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StorageUnusable, match="another version"):
        Database(tmp_path / "mats.db")
    assert newer.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    newer.close()
