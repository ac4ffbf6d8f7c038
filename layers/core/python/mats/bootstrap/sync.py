"""The target of `mats sync`: the local registry or a DynamoDB table, with the entries of each source."""

from mats.adapters.clock import SystemClock
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.sources import SqliteSources
from mats.bootstrap.local import DATABASE, is_missing
from mats.domain.errors import RegistryNotFound
from mats.ports import Clock, SourceBook, SyncTarget
from mats.settings import Settings

_WRITERS, _ATTEMPTS, _TIMEOUT_S = 8, 10, 10.0
"""Concurrent writes to a table, and attempts for each with exponential backoff: a pipeline can wait."""


def source_book(settings: Settings, table: str = "", *, create: bool = False) -> SourceBook:
    """The sources, with what came from each into the local registry or a table. Its file is local in both cases.

    Raises:
        RegistryNotFound: there is no such file, and `create` is false.
        StorageUnusable: the message says what to do.
    """
    if not create and is_missing(settings):
        raise RegistryNotFound(settings.home)
    return SqliteSources(Database(settings.home / DATABASE), table)


def table_target(table: str, region: str = "") -> SyncTarget:
    """The registry in a DynamoDB table.

    Raises:
        NotPermitted: the AWS settings cannot be used.
    """
    from mats.adapters.dynamodb.registry import DynamoRegistry  # noqa: PLC0415 - boto3, for those who write to a table
    from mats.adapters.dynamodb.tables import Tables  # noqa: PLC0415 - as above

    return DynamoRegistry(Tables(region=region, writers=_WRITERS, attempts=_ATTEMPTS, timeout_s=_TIMEOUT_S), table)


def system_clock() -> Clock:
    return SystemClock()
