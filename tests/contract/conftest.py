"""Every adapter of every port, by name; a suite asks for the port and runs on all of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.index import SqliteIndex
from mats.adapters.sqlite.profiles import SqliteProfiles
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry, SqliteTrust
from mats.ports import ProfileStore, Registry, SearchIndex, TrustBook
from tests.fakes import CountingIds, FakeClock, FakeEncoder, MemoryIndex, MemoryProfiles, MemoryRegistry, MemoryTrust

ADAPTERS = ["memory", "sqlite"]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "mats.db")
    yield opened
    opened.close()


@pytest.fixture(params=ADAPTERS)
def adapter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(
    adapter: str, request: pytest.FixtureRequest
) -> Callable[[Callable[[], object], Callable[[Database], object]], object]:
    def made(in_memory: Callable[[], object], in_sqlite: Callable[[Database], object]) -> object:
        return in_memory() if adapter == "memory" else in_sqlite(request.getfixturevalue("database"))

    return made


@pytest.fixture
def registry(make) -> Registry:
    return make(MemoryRegistry, lambda db: SqliteRegistry(db, Announcer(FakeClock(), CountingIds())))


@pytest.fixture
def trust(make) -> TrustBook:
    return make(MemoryTrust, lambda db: SqliteTrust(db, Announcer(FakeClock(), CountingIds())))


@pytest.fixture
def profiles(make) -> ProfileStore:
    return make(MemoryProfiles, SqliteProfiles)


@pytest.fixture
def index(make) -> SearchIndex:
    return make(MemoryIndex, lambda db: SqliteIndex(db, encoder=FakeEncoder().name))
