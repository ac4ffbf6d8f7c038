"""One table of stores: a contract suite runs on every store that has its port.

A new store is one more class in STORES, with a method for each port that it has.
"""

import itertools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mats.adapters.clock import Retention
from mats.adapters.dynamodb.profiles import DynamoProfiles, DynamoTargets
from mats.adapters.dynamodb.receipts import DynamoOutcomes, DynamoReceipts
from mats.adapters.dynamodb.registry import DynamoRegistry, DynamoTrust
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.files.bucket import Bucket
from mats.adapters.files.generations import FilesGenerations
from mats.adapters.files.index import FilesIndex
from mats.adapters.files.memory import FilesMemory
from mats.adapters.files.store import Store
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.generations import OpenSearchGenerations
from mats.adapters.opensearch.index import ALIAS, OpenSearchIndex
from mats.adapters.opensearch.mapping import index_body, write_alias
from mats.adapters.opensearch.memory import OpenSearchMemory
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.entries import SqliteGenerations
from mats.adapters.sqlite.index import SqliteIndex
from mats.adapters.sqlite.memory import SqliteMemory
from mats.adapters.sqlite.profiles import SqliteProfiles
from mats.adapters.sqlite.receipts import SqliteOutcomes, SqliteReceipts
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry, SqliteTrust
from mats.adapters.sqlite.sources import SqliteSources
from mats.ports import Generations, Memory, Outcomes, ProfileStore, Receipts, SearchIndex, Stored, Target
from mats.usecases.learn import Learn
from mats.usecases.reindex import Reindex
from tests.aws.s3 import S3
from tests.aws.tables import a_table, an_outcomes_table, credentials
from tests.fakes import (
    CountingIds,
    FakeClock,
    FakeEncoder,
    MemoryIndex,
    MemoryProfiles,
    MemoryRegistry,
    MemoryTrust,
)  # fmt: skip
from tests.learning import MemoryOutcomes, MemoryReceipts

ENGINES = {"aws": ("2.19", "opensearch_url"), "aws, OpenSearch 3": ("3.5", "opensearch3_url")}
"""Versions and fixtures of real OpenSearch nodes."""
ENCODER = FakeEncoder()
_numbers = itertools.count(1)


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


@dataclass(frozen=True)
class Learning:
    """Outcomes and the memory that follows them; `learn` is what the event path does."""

    outcomes: Outcomes
    memory: Memory
    learn: Callable[[Collection[str]], None]


class InMemory:
    """The fakes of the unit tests, which keep the contracts, too."""

    registry, trust, outcomes = MemoryRegistry, MemoryTrust, MemoryOutcomes
    profiles, receipts = MemoryProfiles, MemoryReceipts

    def __init__(self, request: pytest.FixtureRequest) -> None:
        """Nothing is shared between tests."""

    def index(self) -> MemoryIndex:
        return MemoryIndex(ENCODER.name)


def _announcer() -> Announcer:
    return Announcer(FakeClock(), CountingIds())


def _over_database(made: Callable[..., Any], *more: Callable[[], Any]) -> Callable[..., Any]:
    """A port of InSqlite."""
    return lambda store, *given: made(store.database, *(one() for one in more), *given)


def _in_a_table(made: Callable[..., Any], *keys: str) -> Callable[..., Any]:
    """A port of InDynamo, in a table of its own with these keys."""
    return lambda store, *given: made(store.tables, a_table(store.tables, **({"keys": keys} if keys else {})), *given)


class InSqlite:
    """One file."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.database = request.getfixturevalue("database")

    registry, trust = (_over_database(made, _announcer) for made in (SqliteRegistry, SqliteTrust))
    profiles, receipts, outcomes = map(_over_database, (SqliteProfiles, SqliteReceipts, SqliteOutcomes))
    sources = _over_database(SqliteSources)

    def index(self) -> SqliteIndex:
        return SqliteIndex(self.database, encoder=ENCODER.name)

    def renewable(self) -> Renewable:
        return Renewable(self.profiles(), self.index(), SqliteGenerations(self.database, self.index().name))

    def learning(self) -> Callable[[str, int], Learning]:
        outcomes = SqliteOutcomes(self.database)
        return lambda encoder, dimension: Learning(
            outcomes, SqliteMemory(self.database, encoder=encoder), lambda ids: None
        )


class InDynamo:
    """Tables of DynamoDB Local."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.tables = request.getfixturevalue("tables")

    registry, trust, profiles = map(_in_a_table, (DynamoRegistry, DynamoTrust, DynamoProfiles))
    receipts = _in_a_table(DynamoReceipts, "query_id")

    def outcomes(self) -> DynamoOutcomes:
        return DynamoOutcomes(self.tables, an_outcomes_table(self.tables))


class InOpenSearch:
    """An index on a node of ENGINES."""

    engine = "aws"

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.request = request
        request.getfixturevalue("aws_credentials")
        self.domain = Domain(request.getfixturevalue(ENGINES[self.engine][1]), read_s=10)

    def index(self) -> OpenSearchIndex:
        name = f"contract-{next(_numbers)}"
        body = index_body(ENCODER.dimension, aliases=[write_alias(name)], replicas="0-1", refresh="-1")
        self.domain.create(name, body)
        self.request.addfinalizer(lambda: self.domain.drop(name))
        targets = [Target(name, ENCODER.name)]
        return OpenSearchIndex(
            self.domain, lambda: targets, encoder=ENCODER.name, read=name, refresh="true",
            engine=ENGINES[self.engine][0],
        )  # fmt: skip

    def renewable(self) -> Renewable:
        tables = self.request.getfixturevalue("tables")
        profiles = DynamoProfiles(tables, a_table(tables))
        generations = OpenSearchGenerations(
            domain=self.domain, targets=DynamoTargets(tables, profiles.table), encoder=ENCODER.name,
            dimension=ENCODER.dimension, replicas="0-1", refresh="-1", under_way_s=0,
        )  # fmt: skip
        self.request.addfinalizer(lambda: self.domain.drop(f"{ALIAS}-*"))
        index = OpenSearchIndex(
            self.domain, generations.writable, generations.restore, encoder=ENCODER.name, refresh="true"
        )
        return Renewable(profiles, index, generations)

    def learning(self) -> Callable[[str, int], Learning]:
        """The memory over outcomes that are kept in memory: those of DynamoDB have a suite."""
        alias, outcomes = f"memory-{next(_numbers)}", MemoryOutcomes()
        self.request.addfinalizer(lambda: self.domain.drop(f"{alias}-*"))

        def made(encoder: str, dimension: int) -> Learning:
            memory = OpenSearchMemory(
                domain=self.domain, encoder=encoder, dimension=dimension, alias=alias, refresh="true", replicas="0-1"
            )
            return Learning(outcomes, memory, Learn(outcomes, memory))

        return made


class InOpenSearch3(InOpenSearch):
    """The same on the next version."""

    engine = "aws, OpenSearch 3"


class InFiles:
    """A bucket of S3."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.bucket, self.ends = request.getfixturevalue("bucket"), request.addfinalizer

    def index(self) -> FilesIndex:
        return self.renewable().index

    def renewable(self) -> Renewable:
        store = Store(self.bucket, f"index-{next(_numbers)}")
        generations = FilesGenerations(store, ENCODER.name)
        index = FilesIndex(store, generations.writable, encoder=ENCODER.name, fresh_s=0)
        for made in (generations, index):
            self.ends(made.close)
        return Renewable(MemoryProfiles(), index, generations)

    def learning(self) -> Callable[[str, int], Learning]:
        outcomes, store = MemoryOutcomes(), Store(self.bucket, f"memory-{next(_numbers)}")

        def made(encoder: str, dimension: int) -> Learning:
            memory = FilesMemory(store, encoder=encoder, fresh_s=0)
            self.ends(memory.close)
            return Learning(outcomes, memory, Learn(outcomes, memory))

        return made


STORES: dict[str, tuple[type, ...]] = {
    "memory": (InMemory,),
    "sqlite": (InSqlite,),
    "files": (InFiles,),
    "aws": (InDynamo, InOpenSearch),
    "aws, OpenSearch 3": (InOpenSearch3,),
}


def stores_of(port: str, *left_out: str) -> list[Any]:
    """The names of the stores with a port, as parameters."""
    return [
        pytest.param(name, marks=pytest.mark.server) if "aws" in name else name
        for name, kinds in STORES.items()
        if name not in left_out and any(getattr(kind, port, None) for kind in kinds)
    ]


def open_store(request: pytest.FixtureRequest, port: str, *arguments: object) -> Any:
    """The port of the store that a test is parametrised with."""
    kind = next(kind for kind in STORES[request.param] if getattr(kind, port, None))
    return getattr(kind(request), port)(*arguments)


def over(port: str) -> Any:
    """A fixture that opens this port of every store that has it."""

    @pytest.fixture(params=stores_of(port))
    def made(request: pytest.FixtureRequest) -> Any:
        return open_store(request, port)

    return made


registry, trust, source_book, profiles = over("registry"), over("trust"), over("sources"), over("profiles")
outcomes, index = over("outcomes"), over("index")
renewable, learning = over("renewable"), over("learning")


Aging = tuple[ProfileStore, FakeClock]
Expiring = tuple[Receipts, FakeClock]


@pytest.fixture(params=stores_of("profiles"))
def aging(request: pytest.FixtureRequest) -> Aging:
    """A profile store that keeps superseded versions for ten days, and its clock."""
    clock = FakeClock()
    return open_store(request, "profiles", Retention(10, clock)), clock


@pytest.fixture(params=stores_of("receipts"))
def expiring(request: pytest.FixtureRequest) -> Expiring:
    """Receipts that are kept for thirty days, and their clock."""
    clock = FakeClock()
    return open_store(request, "receipts", Retention(30, clock)), clock


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "mats.db")
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def bucket() -> Iterator[Bucket]:
    """A bucket of a stand-in; a store has a prefix of its own there, since a client takes long to make."""
    with S3(page=3).serving() as url:
        with pytest.MonkeyPatch.context() as patched:
            credentials(patched, s3=url)
            made = Bucket("bucket")
        yield made


@pytest.fixture
def aws_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    credentials(monkeypatch)


@pytest.fixture(scope="session")
def tables(dynamodb_url: str) -> Tables:
    """A client of DynamoDB Local."""
    with pytest.MonkeyPatch.context() as patched:
        credentials(patched, dynamodb=dynamodb_url)
        return Tables()
