"""Fixtures for every adapter of every port; a suite runs on all adapters of its port."""

import itertools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mats.adapters.clock import Retention
from mats.adapters.dynamodb.operators import DynamoModelSwitch
from mats.adapters.dynamodb.outcomes import DynamoOutcomes
from mats.adapters.dynamodb.profiles import DynamoProfiles, DynamoTargets
from mats.adapters.dynamodb.receipts import DynamoReceipts
from mats.adapters.dynamodb.registry import DynamoRegistry, DynamoTrust
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.generations import OpenSearchGenerations
from mats.adapters.opensearch.index import ALIAS, OpenSearchIndex
from mats.adapters.opensearch.mapping import index_body, write_alias
from mats.adapters.opensearch.memory import OpenSearchMemory
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.entries import SqliteGenerations
from mats.adapters.sqlite.exposure import SqliteExposure
from mats.adapters.sqlite.index import SqliteIndex
from mats.adapters.sqlite.memory import SqliteMemory
from mats.adapters.sqlite.profiles import SqliteListing, SqliteProfiles
from mats.adapters.sqlite.queue import SqliteQueue
from mats.adapters.sqlite.receipts import SqliteOutcomes, SqliteReceipts
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry, SqliteTrust
from mats.adapters.sqlite.sources import SqliteSources
from mats.domain.capability.capability import Id
from mats.ports import (
    ConditionalRegistry,
    DeadLetter,
    ExposureLog,
    Generations,
    Listing,
    Memory,
    ModelSwitch,
    Outcomes,
    ProfileStore,
    QueueMonitor,
    Receipts,
    SearchIndex,
    SourceBook,
    Stored,
    SyncTarget,
    Target,
    TrustBook,
)
from mats.usecases.learn import Learn
from mats.usecases.reindex import Reindex
from tests.aws.tables import a_table, an_outcomes_table, credentials
from tests.fakes import (
    CountingIds,
    FakeClock,
    FakeEncoder,
    MemoryExposure,
    MemoryIndex,
    MemoryListing,
    MemoryModelSwitch,
    MemoryProfiles,
    MemoryQueue,
    MemoryRegistry,
    MemorySources,
    MemoryTrust,
)
from tests.learning import MemoryOutcomes, MemoryReceipts

_numbers = itertools.count(1)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "mats.db")
    yield opened
    opened.close()


@pytest.fixture
def tables(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """A client of DynamoDB Local."""
    credentials(monkeypatch, dynamodb=request.getfixturevalue("dynamodb_url"))
    return Tables()


ENGINES = {"aws": ("2.19", "opensearch_url"), "aws, OpenSearch 3": ("3.5", "opensearch3_url")}
"""Versions and fixtures of real OpenSearch nodes."""
IN_AWS = [pytest.param(name, marks=pytest.mark.server) for name in ENGINES]


@pytest.fixture
def domain_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Domain]:
    """Makes a client of a node of ENGINES."""
    credentials(monkeypatch)
    return lambda engine: Domain(request.getfixturevalue(ENGINES[engine][1]), read_s=10)


@pytest.fixture(params=["memory", "sqlite", pytest.param("aws", marks=pytest.mark.server)])
def adapter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


Making = Callable[[Callable[[], object], Callable[[Database], object], Callable[[], object]], Any]


@pytest.fixture
def make(adapter: str, request: pytest.FixtureRequest) -> Making:
    def made(
        in_memory: Callable[[], object], in_sqlite: Callable[[Database], object], in_aws: Callable[[], object]
    ) -> object:
        if adapter == "sqlite":
            return in_sqlite(request.getfixturevalue("database"))
        return in_memory() if adapter == "memory" else in_aws()

    return made


def _dynamo(request: pytest.FixtureRequest, kind: Callable[[Tables, str], object]) -> object:
    tables = request.getfixturevalue("tables")
    return kind(tables, a_table(tables))


@pytest.fixture(params=["memory", "sqlite"])
def source_book(request: pytest.FixtureRequest) -> SourceBook:
    return MemorySources() if request.param == "memory" else SqliteSources(request.getfixturevalue("database"))


@pytest.fixture
def registry(make: Making, request: pytest.FixtureRequest) -> SyncTarget:
    return make(
        MemoryRegistry,
        lambda db: SqliteRegistry(db, Announcer(FakeClock(), CountingIds())),
        lambda: _dynamo(request, DynamoRegistry),
    )


@pytest.fixture
def trust(make: Making, request: pytest.FixtureRequest) -> TrustBook:
    return make(
        MemoryTrust,
        lambda db: SqliteTrust(db, Announcer(FakeClock(), CountingIds())),
        lambda: _dynamo(request, DynamoTrust),
    )


@pytest.fixture(params=["memory", pytest.param("aws", marks=pytest.mark.server)])
def model_switch(request: pytest.FixtureRequest) -> ModelSwitch:
    if request.param == "memory":
        return MemoryModelSwitch()
    tables = request.getfixturevalue("tables")
    return DynamoModelSwitch(tables, a_table(tables, keys=("name",)))


@pytest.fixture
def profiles(make: Making, request: pytest.FixtureRequest) -> ProfileStore:
    return make(MemoryProfiles, SqliteProfiles, lambda: _dynamo(request, DynamoProfiles))


@dataclass(frozen=True)
class Aging:
    """A profile store that keeps superseded versions for ten days, and its clock."""

    profiles: ProfileStore
    clock: FakeClock


@pytest.fixture
def aging(make: Making, request: pytest.FixtureRequest) -> Aging:
    clock = FakeClock()
    retention = Retention(10, clock)
    profiles = make(
        lambda: MemoryProfiles(retention),
        lambda database: SqliteProfiles(database, retention),
        lambda: _dynamo(request, lambda tables, table: DynamoProfiles(tables, table, retention)),
    )
    return Aging(profiles, clock)


@dataclass(frozen=True)
class Expiring:
    """Receipts that are kept for thirty days, and their clock."""

    receipts: Receipts
    clock: FakeClock


@pytest.fixture
def expiring(make: Making, request: pytest.FixtureRequest) -> Expiring:
    clock = FakeClock()
    retention = Retention(30, clock)

    def in_aws() -> Receipts:
        tables = request.getfixturevalue("tables")
        return DynamoReceipts(tables, a_table(tables, keys=("query_id",)), retention)

    receipts = make(lambda: MemoryReceipts(retention), lambda database: SqliteReceipts(database, retention), in_aws)
    return Expiring(receipts, clock)


@pytest.fixture
def outcomes(make: Making, request: pytest.FixtureRequest) -> Outcomes:
    def in_aws() -> Outcomes:
        tables = request.getfixturevalue("tables")
        keys = an_outcomes_table(tables), a_table(tables, keys=("id", "caller"))
        return DynamoOutcomes(tables, *keys)

    return make(MemoryOutcomes, SqliteOutcomes, in_aws)


@pytest.fixture(params=["memory", "sqlite", "sqlite-two-passes", *IN_AWS])
def index(request: pytest.FixtureRequest) -> SearchIndex:
    encoder = FakeEncoder()
    if request.param == "memory":
        return MemoryIndex()
    if request.param.startswith("sqlite"):
        passes = {} if request.param == "sqlite" else {"exact_up_to": 0}
        return SqliteIndex(request.getfixturevalue("database"), encoder=encoder.name, **passes)
    domain, name = request.getfixturevalue("domain_on")(request.param), f"contract-{next(_numbers)}"
    domain.create(name, index_body(encoder.dimension, aliases=[write_alias(name)], replicas="0-1", refresh="-1"))
    request.addfinalizer(lambda: domain.drop(name))  # noqa: PT021 - the others have nothing to drop
    targets = [Target(name, encoder.name)]
    return OpenSearchIndex(
        domain, lambda: targets, encoder=encoder.name, read=name, refresh="true", engine=ENGINES[request.param][0]
    )


@dataclass(frozen=True)
class Renewable:
    """A profile store, its index and its generations."""

    profiles: ProfileStore
    index: SearchIndex
    generations: Generations

    def save(self, *entries: Stored) -> None:
        """As enrichment does: save, index, mark."""
        assert not self.profiles.save(entries)
        self.index.put(entries)
        self.profiles.mark_indexed({entry.profile.id: entry.profile.rev for entry in entries})

    @property
    def reindex(self) -> Reindex:
        return Reindex(profiles=self.profiles, generations=self.generations, page=4)


@pytest.fixture(params=["sqlite", *IN_AWS])
def renewable(request: pytest.FixtureRequest) -> Renewable:
    encoder = FakeEncoder()
    if request.param == "sqlite":
        database = request.getfixturevalue("database")
        index = SqliteIndex(database, encoder=encoder.name)
        return Renewable(SqliteProfiles(database), index, SqliteGenerations(database, index.name))
    domain, tables = request.getfixturevalue("domain_on")(request.param), request.getfixturevalue("tables")
    profiles = DynamoProfiles(tables, a_table(tables))
    generations = OpenSearchGenerations(
        domain=domain, targets=DynamoTargets(tables, profiles.table), encoder=encoder.name,
        dimension=encoder.dimension, replicas="0-1", refresh="-1", under_way_s=0,
    )  # fmt: skip
    request.addfinalizer(lambda: domain.drop(f"{ALIAS}-*"))  # noqa: PT021 - sqlite has nothing to drop
    index = OpenSearchIndex(domain, generations.writable, generations.restore, encoder=encoder.name, refresh="true")
    return Renewable(profiles, index, generations)


@dataclass(frozen=True)
class LocalStores:
    """The ports of the local system alone, with the adapters that write to them."""

    registry: ConditionalRegistry
    profiles: ProfileStore
    index: SearchIndex
    listing: Listing
    queue: QueueMonitor
    announce: Callable[[Id], None]
    """Put a change of this capability into the queue."""
    handle: Callable[[], None]
    """Empty the queue."""
    give_up: Callable[[str], None]
    """Make dead letters of everything in the queue, for this reason."""

    def index_revision(self, stored: Stored) -> None:
        """As enrichment does: save, index, mark."""
        assert not self.profiles.save([stored])
        self.index.put([stored])
        self.profiles.mark_indexed({stored.profile.id: stored.profile.rev})


def _local_in_memory() -> LocalStores:
    registry, profiles, queue = MemoryRegistry(), MemoryProfiles(), MemoryQueue()

    def give_up(reason: str) -> None:
        queue.changes = [DeadLetter(change.id, reason) for change in queue.changes]

    return LocalStores(
        registry, profiles, MemoryIndex(), MemoryListing(registry, profiles, queue), queue,
        announce=lambda id: queue.changes.append(DeadLetter(id, "")), handle=queue.changes.clear, give_up=give_up,
    )  # fmt: skip


def _local_in_sqlite(database: Database) -> LocalStores:
    announcer = Announcer(FakeClock(), CountingIds())

    def announce(id: Id) -> None:
        with database.writing() as connection:
            announcer(connection, "Registry", "MODIFY", id)

    def execute(statement: str, *values: str) -> None:
        with database.writing() as connection:
            connection.execute(statement, values)

    return LocalStores(
        SqliteRegistry(database, announcer),
        SqliteProfiles(database),
        SqliteIndex(database, encoder=FakeEncoder().name),
        SqliteListing(database, database.watch()),
        SqliteQueue(database, "1:test"),
        announce=announce,
        handle=lambda: execute("DELETE FROM events"),
        give_up=lambda reason: execute("UPDATE events SET dead = ?", reason),
    )


@pytest.fixture(params=["memory", "sqlite"])
def stores(request: pytest.FixtureRequest) -> LocalStores:
    return _local_in_memory() if request.param == "memory" else _local_in_sqlite(request.getfixturevalue("database"))


@pytest.fixture(params=["memory", "sqlite"])
def exposure_log(request: pytest.FixtureRequest) -> ExposureLog:
    """A log of the latest five answers."""
    if request.param == "memory":
        return MemoryExposure(FakeClock(), latest=5)
    return SqliteExposure(request.getfixturevalue("database").watch(), FakeClock(), latest=5)


@dataclass(frozen=True)
class Learning:
    """Outcomes and the memory that follows them; `learn` is what the event path does."""

    outcomes: Outcomes
    memory: Memory
    learn: Callable[[Collection[str]], None]


@pytest.fixture(params=["sqlite", *IN_AWS])
def learning(request: pytest.FixtureRequest) -> Callable[[str, int], Learning]:
    """Makes the memory of an encoder with vectors of a dimension, over the same outcomes each time."""
    if request.param == "sqlite":
        database = request.getfixturevalue("database")
        outcomes = SqliteOutcomes(database)
        return lambda encoder, dimension: Learning(outcomes, SqliteMemory(database, encoder=encoder), lambda ids: None)
    domain, alias = request.getfixturevalue("domain_on")(request.param), f"memory-{next(_numbers)}"
    request.addfinalizer(lambda: domain.drop(f"{alias}-*"))  # noqa: PT021 - sqlite has nothing to drop
    in_memory = MemoryOutcomes()

    def made(encoder: str, dimension: int) -> Learning:
        memory = OpenSearchMemory(
            domain=domain, encoder=encoder, dimension=dimension, alias=alias, refresh="true", replicas="0-1"
        )
        return Learning(in_memory, memory, Learn(in_memory, memory))

    return made
