"""Creation, backup and restore killed with SIGKILL at 50 points: nothing is lost, and running again completes."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

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


def test_a_killed_restore_leaves_the_registry_before_or_after_and_never_loses_the_first(start: Path):
    killed.OPERATIONS["backup"](start)
    sql(start / killed.HOME, "DELETE FROM registry WHERE id LIKE 'com.acme%'")
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
