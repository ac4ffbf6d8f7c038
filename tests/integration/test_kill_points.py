"""Backup, restore and migration killed with SIGKILL at 50 points: nothing is lost, and running again completes."""

import gzip
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.index import SqliteIndex
from mats.adapters.sqlite.migrations import SCHEMA_VERSION
from mats.domain.ranking.query import Filter
from tests import killed
from tests.integration.test_home import FIRST_RELEASE

TABLES = ("registry", "trust", "events", "profiles", "profile_versions", "entries")
"""Without the words of the index, which are made from the entries again: see `found_by_words`."""

Rows = dict[str, list[tuple[Any, ...]]]


def rows(file: Path) -> Rows:
    """The content of a sound file, in the columns of the first release."""
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    columns = {table: ", ".join(_columns(connection, table)) for table in TABLES}
    found = {table: connection.execute(f"SELECT {columns[table]} FROM {table}").fetchall() for table in TABLES}
    connection.close()
    return found


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    return [name for name in names if name not in ("expires_at", "provider")]


def found_by_words(file: Path) -> set[str]:
    """The entries that a search by words finds, in a file of any version."""
    with closing(Database(file)) as database:
        return {hit.id for hit in SqliteIndex(database).lexical(["refund", "salari"], Filter(), depth=9)}


def version(file: Path) -> int:
    connection = sqlite3.connect(file)
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    return int(found)


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """A folder with a registry of the first release."""
    folder = tmp_path / "start"
    (folder / "home").mkdir(parents=True)
    with gzip.open(FIRST_RELEASE) as packed, (folder / killed.HOME).open("wb") as file:
        shutil.copyfileobj(packed, file)
    return folder


def test_a_killed_migration_leaves_the_old_file_or_the_new_one(start: Path):
    before = rows(start / killed.HOME)
    versions = set()
    for folder in killed.kill("migrate", start):
        file = folder / killed.HOME
        versions.add(version(file))
        assert rows(file) == before
        killed.OPERATIONS["migrate"](folder)
        assert (rows(file), version(file)) == (before, SCHEMA_VERSION)
        assert "com.acme.pay/refund" in found_by_words(file)
    assert versions == {1, SCHEMA_VERSION}


def test_a_killed_backup_leaves_no_half_file_and_the_registry_as_it_was(start: Path):
    killed.OPERATIONS["migrate"](start)
    before = rows(start / killed.HOME)
    found = set()
    for folder in killed.kill("backup", start):
        assert rows(folder / killed.HOME) == before
        found.add((folder / killed.FILE).exists())
        if (folder / killed.FILE).exists():
            assert rows(folder / killed.FILE) == before
        killed.OPERATIONS["backup"](folder)
        assert rows(folder / killed.FILE) == before
        assert sorted(path.name for path in folder.iterdir()) == ["home", killed.FILE]
    assert found == {False, True}


def test_a_killed_restore_leaves_the_registry_before_or_after_and_never_loses_the_first(start: Path):
    shutil.copy(start / killed.HOME, start / killed.FILE)  # of the first release: it is migrated on the way
    killed.OPERATIONS["migrate"](start)
    connection = sqlite3.connect(start / killed.HOME)
    connection.execute("DELETE FROM registry WHERE id LIKE 'com.acme%'")
    connection.commit()
    connection.close()
    old, new = rows(start / killed.HOME), rows(start / killed.FILE)
    assert old != new
    found = set()
    for folder in killed.kill("restore", start):
        file = folder / killed.HOME
        content = rows(file)
        assert content in (old, new)
        found.add(content == new)
        if content == new:
            assert old in [rows(kept) for kept in file.parent.glob("mats.before-restore-*.db")]
        killed.OPERATIONS["restore"](folder)
        assert (rows(file), version(file)) == (new, SCHEMA_VERSION)
        assert rows(folder / killed.FILE) == new
        assert not [path for path in file.parent.iterdir() if "partial" in path.name]
    assert found == {False, True}
