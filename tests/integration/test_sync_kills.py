"""Sync, prune and indexing killed with SIGKILL at 50 points: nothing is lost, and running again completes."""

import json
from pathlib import Path
from typing import Any

import pytest

from mats.adapters.clock import SystemClock, fresh_id
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry
from tests import killed
from tests.builders import a_registration
from tests.command import sql

pytestmark = pytest.mark.long(slice="kills")

BY_HAND = a_registration(name="t1", version="by hand")
EDITED = a_registration(name="t2", version="1", tags=["mine"])

Registered = dict[str, str]


def row(number: int, version: str) -> dict[str, Any]:
    return a_registration(name=f"t{number}", version=version).item()


def listing(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / killed.SOURCE).write_text("".join(f"{json.dumps(one)}\n" for one in rows))


def registered(folder: Path) -> Registered:
    """The version of each capability in a sound file."""
    assert sql(folder / killed.HOME, "PRAGMA integrity_check") == [("ok",)]
    found = sql(folder / killed.HOME, "SELECT id, json_extract(item, '$.version') FROM registry")
    return {id.rpartition("/")[2]: version for id, version in found}


@pytest.fixture
def start(tmp_path: Path) -> Path:
    """A synced source of twelve entries, one changed and one edited since; it now lists others of them, changed."""
    folder = tmp_path / "start"
    folder.mkdir()
    listing(folder, [row(number, "1") for number in range(12)])
    killed.OPERATIONS["sync"](folder)
    database = Database(folder / killed.HOME)
    SqliteRegistry(database, Announcer(SystemClock(), fresh_id)).put([BY_HAND, EDITED])
    database.close()
    listing(folder, [row(number, "2") for number in range(1, 14) if number not in (3, 4)])
    return folder


LISTED = {f"t{number}": "2" for number in range(1, 14) if number not in (3, 4)} | {"t1": "by hand"}
GONE = {"t0": "1", "t3": "1", "t4": "1"}


@pytest.mark.parametrize(("operation", "complete"), [("sync", LISTED | GONE), ("prune", LISTED)])
def test_a_killed_sync_loses_nothing_and_is_completed_by_the_next(start: Path, operation: str, complete: Registered):
    before, found = registered(start), []
    for folder in killed.kill(operation, start):
        after = registered(folder)
        assert {id: version for id, version in after.items() if before.get(id) != version}.items() <= LISTED.items()
        assert before.keys() - after.keys() <= (GONE.keys() if operation == "prune" else set())
        found.append(after)
        killed.OPERATIONS[operation](folder)
        assert registered(folder) == complete
        edited = sql(folder / killed.HOME, "SELECT json_extract(item, '$.tags') FROM registry WHERE id LIKE '%/t2'")
        assert edited == [('["mine"]',)]
    assert before in found
    assert complete in found


REGISTERED = 70  # Enough that everything becomes findable before it is encoded (see `killed`), and two batches


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """Registrations that nobody has indexed."""
    folder = tmp_path / "start"
    database = Database(folder / killed.HOME)
    registry = SqliteRegistry(database, Announcer(SystemClock(), fresh_id))
    registry.put([a_registration(name=f"t{number}") for number in range(REGISTERED)])
    database.close()
    return folder


def states(folder: Path) -> set[tuple[int, int, int]]:
    """Which revision, whether it is in the index, and whether it has a vector there."""
    file = folder / killed.HOME
    assert sql(file, "PRAGMA integrity_check") == [("ok",)]
    query = (
        "SELECT profiles.rev, coalesce(entries.rev, 0) = profiles.rev, entries.vector IS NOT NULL "
        "FROM registry LEFT JOIN profiles USING (id) LEFT JOIN entries USING (id)"
    )
    found = sql(file, query)
    assert len(found) == REGISTERED
    assert sql(file, "SELECT * FROM events") or {row[1:] for row in found} == {(1, 1)}
    return set(found)


def test_killed_indexing_loses_nothing_and_is_completed_by_the_next(waiting: Path):
    found = []
    for folder in killed.kill("index", waiting):
        found.append(states(folder))
        killed.OPERATIONS["index"](folder)
        assert states(folder) == {(2, 1, 1)}
    assert {(1, 1, 0)} in found
