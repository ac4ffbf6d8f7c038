"""Creation, backup and restore killed with SIGKILL at 50 points: nothing is lost, and running again completes."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mats.adapters.sqlite.backup import back_up
from mats.adapters.sqlite.database import SCHEMA_VERSION
from mats.bootstrap.local import local_system
from mats.local.worker import drain
from mats.settings import Settings
from tests import killed
from tests.builders import a_registration
from tests.command import sql

pytestmark = pytest.mark.long(slice="kills")

TABLES = ("registry", "trust", "events", "profiles", "profile_versions", "entries")

Rows = dict[str, list[tuple[Any, ...]]]


def rows(file: Path) -> Rows:
    """The content of a sound file."""
    assert sql(file, "PRAGMA integrity_check") == [("ok",)]
    return {table: sql(file, f"SELECT * FROM {table}") for table in TABLES}


def version(file: Path) -> int:
    return int(sql(file, "PRAGMA user_version")[0][0])


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """A folder with a registry: two capabilities, of which one waits to be indexed."""
    folder = tmp_path / "start"
    with closing(local_system(Settings(home=folder / "home", encoder="none"))) as local:
        local.stores.registry.put([a_registration(name="refund"), a_registration(name="gone")])
        drain(local)
        local.stores.registry.remove(a_registration(name="gone").id)
    return folder


def test_a_killed_creation_leaves_a_file_that_can_be_opened(tmp_path: Path):
    (tmp_path / "start").mkdir()
    versions = set()
    for folder in killed.kill("create", tmp_path / "start"):
        file = folder / killed.HOME
        versions.add(version(file) if file.exists() else 0)
        killed.OPERATIONS["create"](folder)
        assert version(file) == SCHEMA_VERSION
        assert not any(rows(file).values())
    assert versions == {0, SCHEMA_VERSION}


def test_a_killed_backup_leaves_no_half_file_and_the_registry_as_it_was(start: Path):
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


def test_a_killed_restore_leaves_an_empty_registry_or_a_whole_one(start: Path):
    killed.OPERATIONS["backup"](start)
    whole = sql(start / killed.HOME, "SELECT * FROM registry")
    found = set()
    for folder in killed.kill("restore", start):
        file = folder / killed.RESTORED
        if not file.exists() or version(file) == 0 or not sql(file, "SELECT * FROM registry"):
            found.add(False)
            killed.OPERATIONS["restore"](folder)
        else:
            found.add(True)
        restored = rows(file)
        assert restored["registry"] == whole
        assert len(restored["events"]) == len(whole) + 1  # and what was removed and still has a profile
    assert found == {False, True}


def test_the_next_backup_in_a_folder_deletes_what_a_killed_one_left(start: Path):
    for folder in killed.kill("backup", start):
        left = [path for path in folder.iterdir() if "partial" in path.name]
        with closing(local_system(Settings(home=folder / "home", encoder="none"))) as local:
            back_up(local.stores.database, folder / "other.backup")
        names = {path.name for path in folder.iterdir()}
        assert names <= {"home", killed.FILE, "other.backup"}, left
