"""Errors of the database file, each with a remedy in one line."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mats.adapters.sqlite.database import SCHEMA_VERSION, Database
from mats.domain.errors import DependencyFailed, StorageUnusable


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
            connection.execute("INSERT INTO trust (id, assigned) VALUES ('a/b', '{}')")
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


def test_processes_that_create_a_file_at_once_all_open_it(tmp_path: Path):
    for number in range(5):
        with ThreadPoolExecutor(4) as threads:
            for database in threads.map(Database, [tmp_path / f"{number}.db"] * 4):
                assert database.rows("SELECT change, purge FROM counter") == [(0, 0)]
                database.close()


@pytest.mark.parametrize(
    ("version", "to_do"),
    [(SCHEMA_VERSION - 1, "`mats export` of that version"), (SCHEMA_VERSION + 1, "or a newer one")],
)
def test_a_file_of_another_schema_is_left_alone(tmp_path: Path, version: int, to_do: str):
    other = sqlite3.connect(tmp_path / "mats.db", isolation_level=None)
    other.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StorageUnusable, match=to_do):
        Database(tmp_path / "mats.db")
    assert other.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    other.close()
