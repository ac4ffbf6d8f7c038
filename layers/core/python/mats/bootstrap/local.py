"""The system on one machine, over one folder."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, TypeAlias, cast

from mats import ports
from mats.adapters.background_receipts import BackgroundReceipts
from mats.adapters.clock import FOR_EVER, Retention, SystemClock, fresh_id
from mats.adapters.sqlite.backup import Contents, back_up, open_backup, restore
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.home import WriteInProgress, open_private, replacing
from mats.adapters.sqlite.profiles import SqliteListing, SqliteProfiles
from mats.adapters.sqlite.queue import SqliteQueue
from mats.adapters.sqlite.receipts import SqliteOutcomes, SqliteReceipts
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry, SqliteTrust, snapshot
from mats.adapters.sqlite.sources import SqliteSources
from mats.bootstrap.models import ConfiguredModels, needed_by
from mats.bootstrap.system import Stores, System
from mats.domain.capability.capability import Id
from mats.domain.errors import NotInstalled, RegistryNotFound
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.profile import Profile
from mats.settings import VERSIONS_DAYS, Settings, SettingsInvalid, variable_of

if TYPE_CHECKING:
    from mats.adapters.prometheus import PrometheusMetrics

DATABASE = "mats.db"
_GATHER_S = 0.1  # Seconds that receipts wait for others, to be stored with one synchronisation of the file


def local_system(
    settings: Settings, *, encoder: ports.Encoder | None = None, writer: ports.Writer | None = None, create: bool = True
) -> "LocalSystem":
    """The system over the folder of these settings; an encoder and a writer that are given replace those they name.

    Raises StorageUnusable: the message says what to do; RegistryNotFound: there is none, and `create` is false;
    SettingsInvalid: the settings name a system in AWS.
    """
    if settings.in_aws:
        raise SettingsInvalid(
            "this command works on a local registry only: unset MATS_INDEX_ENDPOINT (reconcile, reindex and backfill "
            "work in AWS; owners and operators write to the tables themselves)"
        )
    if not create and is_missing(settings):
        raise RegistryNotFound(settings.home)
    models = ConfiguredModels(settings, given_encoder=encoder, given_writer=writer)
    database = Database(settings.home / DATABASE)
    return System(settings, models, LocalStores(database, models, Retention(VERSIONS_DAYS), settings.receipt_days))


def is_missing(settings: Settings) -> bool:
    """True if there is no local registry, nor anything in its place."""
    home = settings.home
    return not os.path.exists(home / DATABASE) and (home.is_dir() or not os.path.lexists(home))  # noqa: PTH110


class LocalStores:
    """Everything in one SQLite file."""

    audiences_of = None
    spread = None
    early_receipts = None

    def __init__(
        self, database: Database, models: ConfiguredModels, retention: Retention = FOR_EVER, receipt_days: int = 0
    ) -> None:
        self.database, self._models = database, models
        self.queue = SqliteQueue(database, f"{os.getpid()}:{fresh_id()}")
        self._announce, watch = Announcer(SystemClock(), fresh_id), database.watch()
        self.registry = SqliteRegistry(database, self._announce)
        self.trust = SqliteTrust(database, self._announce)
        self.sources = SqliteSources(database)
        self.profiles = SqliteProfiles(database, retention)
        self.listing = SqliteListing(database, watch)
        self.receipt_log = SqliteReceipts(watch, Retention(receipt_days))
        self.receipts = (
            BackgroundReceipts(self.receipt_log, gather_s=_GATHER_S, outage=lambda: database.failure)
            if receipt_days
            else None
        )
        self.outcomes = SqliteOutcomes(database)

    @cached_property
    def index(self) -> ports.CandidateIndex:
        from mats.adapters.sqlite.index import SqliteIndex  # noqa: PLC0415 - numpy, for commands that search

        return SqliteIndex(self.database, encoder=self._models.encoder_name)

    @cached_property
    def memory(self) -> ports.Memory:
        from mats.adapters.sqlite.memory import SqliteMemory  # noqa: PLC0415 - numpy, as above

        return SqliteMemory(self.database, encoder=self._models.encoder_name)

    @cached_property
    def generations(self) -> ports.Generations:
        from mats.adapters.sqlite.entries import SqliteGenerations  # noqa: PLC0415 - numpy, as above

        return SqliteGenerations(self.database, self.index.name)

    def snapshot(self, lost: list[Id] | None = None) -> Iterator[Profile | ports.Item | tuple[Id, Assigned]]:
        """Rows of trust, profiles of what is held, and items, as of one moment; `lost` is as for `snapshot`."""
        return snapshot(self.database, lost)

    def restore(self, backup: Connection) -> Contents:
        return restore(backup, self.database, self._announce)

    def openers(self) -> Sequence[Callable[[], object]]:
        """None: everything is in a file."""
        return ()

    def announce_rejections(self, rejected: Sequence[Profile]) -> None:
        """Does nothing: the profile has the reason."""

    def check(self) -> None:
        if self.receipts:
            self.receipts.check()
        self.database.check()

    def close(self) -> None:
        """Store what is waiting and close the file."""
        if self.receipts:
            self.receipts.close()
        self.database.close()


LocalSystem: TypeAlias = System[LocalStores]


def as_local(system: System[Stores]) -> LocalSystem | None:
    """The system with its local stores; None if it is the one in AWS."""
    return cast("LocalSystem", system) if isinstance(system.stores, LocalStores) else None


def source_book(settings: Settings, table: str = "", *, create: bool = False) -> ports.SourceBook:
    """The sources, with what came from each into the local registry or a table. Its file is local in both cases.

    Raises RegistryNotFound: there is no such file, and `create` is false; StorageUnusable: the message says what to do.
    """
    if not create and is_missing(settings):
        raise RegistryNotFound(settings.home)
    return SqliteSources(Database(settings.home / DATABASE), table)


def table_target(table: str, region: str = "") -> ports.SyncTarget:
    """The registry in a DynamoDB table, with several writes at once, each retried: a pipeline can wait.

    Raises NotPermitted: the AWS settings cannot be used.
    """
    from mats.adapters.dynamodb.registry import DynamoRegistry  # noqa: PLC0415 - boto3, for those who write to a table
    from mats.adapters.dynamodb.tables import Tables  # noqa: PLC0415 - boto3, as above

    return DynamoRegistry(Tables(region=region, writers=8, attempts=10, timeout_s=10), table)


def open_metrics(read_state: Callable[[], ports.ServiceState]) -> "PrometheusMetrics":
    from mats.adapters.prometheus import PrometheusMetrics  # noqa: PLC0415 - for who serves

    return PrometheusMetrics(read_state)
