"""The system in an AWS account, and the entry points of functions that are not part of it.

Opening any of them makes no call, and raises NotPermitted if AWS's own settings cannot be used.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from mats.adapters import aws
from mats.adapters.background_receipts import BackgroundReceipts
from mats.adapters.clock import Retention, SystemClock
from mats.adapters.dynamodb.receipts import DynamoOutcomes, DynamoReceipts
from mats.adapters.dynamodb.registry import DynamoCallers, DynamoRegistry, DynamoTrust
from mats.adapters.dynamodb.tables import Tables
from mats.bootstrap.models import ConfiguredModels
from mats.bootstrap.system import Stores, System, observers_of
from mats.domain.profile.profile import Profile
from mats.domain.search.query import Filter
from mats.ports import Encoder, Observer, SearchIndex
from mats.settings import VERSIONS_DAYS, Settings, SettingsInvalid
from mats.usecases.learn import ForgetRemoved, Learn, RecordFeedback

if TYPE_CHECKING:
    from boto3.session import Session

    from mats.adapters.dynamodb.profiles import DynamoProfiles
    from mats.adapters.eventbridge import EventBus
    from mats.adapters.files.generations import FilesGenerations
    from mats.adapters.files.memory import FilesMemory
    from mats.adapters.files.store import Store
    from mats.adapters.opensearch.generations import OpenSearchGenerations
    from mats.adapters.opensearch.memory import OpenSearchMemory
    from mats.edge.changes import Learner
    from mats.edge.feedback import FeedbackService
    from mats.edge.maintenance import Maintenance
    from mats.usecases.resend import SpreadChange

_ONLINE_TIMEOUT_S = 0.3
"""Of reads that an answer waits for: audiences must be known before the search begins."""
_ONLINE = {"timeout_s": 0.25, "attempts": 1}
"""Limits of a read with which a copy of the index catches up within an answer."""
_COMPACTED = 64  # New records, from which on a file of them is made between two nights


def cloud_system(
    settings: Settings, *, encoder: Encoder | None = None, observers: Sequence[Observer] = ()
) -> "CloudSystem":
    """The system over the tables of the stacks and their domain or bucket; `encoder` replaces that of the settings."""
    session = aws.session(settings.index_endpoint)
    models = ConfiguredModels(settings, session, given_encoder=encoder)
    stores = (FilesStores if settings.index_bucket else DomainStores)(settings, models, session)
    return System(settings, models, stores, observers=[*observers])


class CloudStores(Stores):
    """Tables of DynamoDB, and an index. Discovery uses index, callers and receipts."""

    def __init__(self, settings: Settings, models: ConfiguredModels, session: "Session") -> None:
        self._settings, self._models, self._session = settings, models, session

    @cached_property
    def _tables(self) -> Tables:
        if not self._settings.profiles_table:
            raise SettingsInvalid("missing: set MATS_REGISTRY_TABLE, MATS_TRUST_TABLE and MATS_PROFILES_TABLE")
        return Tables(region=self._settings.region, session=self._session)

    @cached_property
    def _online(self) -> Tables:
        """For single reads that an answer waits for."""
        return Tables(region=self._settings.region, timeout_s=_ONLINE_TIMEOUT_S, attempts=1, session=self._session)

    @cached_property
    def registry(self) -> DynamoRegistry:
        return DynamoRegistry(self._tables, self._settings.registry_table)

    @cached_property
    def trust(self) -> DynamoTrust:
        return DynamoTrust(self._tables, self._settings.trust_table)

    @cached_property
    def profiles(self) -> "DynamoProfiles":
        from mats.adapters.dynamodb.profiles import DynamoProfiles  # noqa: PLC0415 - not for discovery

        return DynamoProfiles(self._tables, self._settings.profiles_table, Retention(VERSIONS_DAYS))

    @property
    @abstractmethod
    def memory(self) -> "OpenSearchMemory | FilesMemory | None":
        """The remembered requests; None without an encoder."""

    def compact(self) -> None:
        """Make new files of what has many new records, for every quarter of an hour; a domain does so by itself."""

    @abstractmethod
    def tidy(self) -> None:
        """What is to be done once everything is compared."""

    @cached_property
    def audiences_of(self) -> Callable[[str], frozenset[str]] | None:
        if not self._settings.callers_table:
            return None
        return DynamoCallers(self._online, self._settings.callers_table, SystemClock().elapsed_ms).audiences

    @cached_property
    def early_receipts(self) -> DynamoReceipts | None:
        settings = self._settings
        if not (settings.receipts_table and settings.receipt_days):
            return None
        return DynamoReceipts(self._online, settings.receipts_table, Retention(settings.receipt_days))

    @cached_property
    def receipts(self) -> BackgroundReceipts | None:
        return BackgroundReceipts(self.early_receipts) if self.early_receipts else None

    @cached_property
    def outcomes(self) -> DynamoOutcomes | None:
        settings = self._settings
        if not settings.outcomes_table:
            return None
        return DynamoOutcomes(Tables(region=settings.region, session=self._session), settings.outcomes_table)

    @cached_property
    def bus(self) -> "EventBus":
        from mats.adapters.eventbridge import EventBus  # noqa: PLC0415 - not for discovery

        return EventBus(self._settings.event_bus, region=self._settings.region, session=self._session)

    def openers(self) -> Sequence[Callable[[], object]]:
        settings = self._settings
        used = settings.callers_table or settings.receipts_table
        online = [self._online.open_connection] if used else []
        return [*online, lambda: self.index.lexical(["connect"], Filter(), depth=1)]

    def announce_rejections(self, rejected: Sequence[Profile]) -> None:
        if self._settings.event_bus:
            self.bus.announce_rejections(rejected)

    @cached_property
    def spread(self) -> "SpreadChange":
        from mats.usecases.resend import SpreadChange  # noqa: PLC0415 - not for discovery

        return SpreadChange(
            registry=self.registry, send=self.bus.send_changes, send_rest=self.bus.send_namespace_change
        )

    def check(self) -> None:
        """Does nothing: each write of a table answers by itself."""

    def close(self) -> None:
        """Delete what is only here; clients close their connections themselves."""


class DomainStores(CloudStores):
    """With an index and a memory in a domain of OpenSearch."""

    def __init__(self, settings: Settings, models: ConfiguredModels, session: "Session") -> None:
        from mats.adapters.opensearch.domain import Domain  # noqa: PLC0415 - not for feedback, nor with files

        super().__init__(settings, models, session)
        self._domain = Domain(settings.index_endpoint, region=settings.region, session=session)

    @cached_property
    def index(self) -> SearchIndex:
        """Reads the generations only when it writes."""
        from mats.adapters.opensearch.index import OpenSearchIndex  # noqa: PLC0415 - as above

        return OpenSearchIndex(
            self._domain,
            lambda: self.generations.writable(),  # noqa: PLW0108 - not before the first write
            lambda target: self.generations.restore(target),  # noqa: PLW0108 - as above
            encoder=self._models.encoder_name,
            engine=self._settings.index_engine,
        )

    @cached_property
    def memory(self) -> "OpenSearchMemory | None":
        from mats.adapters.opensearch.memory import OpenSearchMemory  # noqa: PLC0415 - as above

        if (encoder := self._models.encoder) is None:
            return None
        return OpenSearchMemory(domain=self._domain, encoder=encoder.name, dimension=encoder.dimension)

    @cached_property
    def generations(self) -> "OpenSearchGenerations":
        from mats.adapters.dynamodb.profiles import DynamoTargets  # noqa: PLC0415 - not for discovery
        from mats.adapters.opensearch.generations import OpenSearchGenerations  # noqa: PLC0415 - not for discovery

        encoder = self._models.encoder
        return OpenSearchGenerations(
            domain=self._domain,
            targets=DynamoTargets(self._tables, self._settings.profiles_table),
            encoder=self._models.encoder_name,
            dimension=encoder.dimension if encoder else None,
        )

    def tidy(self) -> None:
        self.generations.record()
        if self.memory:
            self.memory.follow()


class FilesStores(CloudStores):
    """With an index and a memory in files of a bucket. docs/decisions/0091."""

    def _store(self, prefix: str, **limits: Any) -> "Store":
        from mats.adapters.files.bucket import Bucket  # noqa: PLC0415 - not where there is a domain
        from mats.adapters.files.store import Store  # noqa: PLC0415 - as above

        settings = self._settings
        return Store(Bucket(settings.index_bucket, region=settings.region, session=self._session, **limits), prefix)

    @cached_property
    def index(self) -> SearchIndex:
        from mats.adapters.files.index import FilesIndex  # noqa: PLC0415 - as above

        return FilesIndex(
            self._store("index"),
            lambda: self.generations.writable(),  # noqa: PLW0108 - not before the first write
            encoder=self._models.encoder_name,
            online=self._store("index", **_ONLINE),
        )

    @cached_property
    def memory(self) -> "FilesMemory | None":
        from mats.adapters.files.memory import FilesMemory  # noqa: PLC0415 - as above

        if not self._models.encoder_name:
            return None
        online = self._store("memory", **_ONLINE)
        return FilesMemory(self._store("memory"), encoder=self._models.encoder_name, online=online)

    @cached_property
    def generations(self) -> "FilesGenerations":
        from mats.adapters.files.generations import FilesGenerations  # noqa: PLC0415 - as above

        return FilesGenerations(self._store("index"), self._models.encoder_name)

    def tidy(self) -> None:
        self.compact(1)

    def compact(self, least: int = _COMPACTED) -> None:
        self.generations.compact(least=least)
        if self.memory:
            self.memory.compact(least=least)

    def close(self) -> None:
        for made in ("index", "memory", "generations"):
            if self.__dict__.get(made):
                self.__dict__[made].close()


CloudSystem: TypeAlias = System[CloudStores]


def open_maintenance(settings: Settings) -> "Maintenance":
    """The maintenance function: compares and fills the index itself, and sends other work down the event path."""
    return maintenance_of(cloud_system(settings))


def maintenance_of(system: CloudSystem) -> "Maintenance":
    from mats.edge.maintenance import Maintenance  # noqa: PLC0415 - for its own function only
    from mats.usecases.resend import Resend  # noqa: PLC0415 - as above

    stores = system.stores
    resend = Resend(
        registry=stores.registry,
        trust=stores.trust,
        profiles=stores.profiles,
        maker=system.profile_maker,
        send=stores.bus.send_changes,
    )
    return Maintenance(
        reconcile=replace(system.reconcile, enrich=resend),
        reindex=system.reindex,
        backfill=replace(system.backfill, enrich=replace(resend, renew=True)),
        registry=stores.registry,
        generations=stores.generations,
        tidy=stores.tidy,
        compact=stores.compact,
        outcomes=stores.outcomes if stores.memory else None,
        send_reports=stores.bus.send_reports,
    )


def open_learner(settings: Settings) -> "Learner":
    """The learning function: updates the memory from outcomes, and deletes outcomes of what was removed.

    Raises:
        SettingsInvalid: there are no outcomes.
    """
    from mats.edge.changes import Learner  # noqa: PLC0415 - for its own function only

    stores = cloud_system(settings).stores
    if stores.outcomes is None:
        raise SettingsInvalid("MATS_OUTCOMES_TABLE must be set")
    forget = ForgetRemoved(stores.registry, stores.outcomes)
    if stores.memory is None:  # without an encoder there is nothing to compare requests by
        return Learner(lambda query_ids: None, forget)
    return Learner(Learn(stores.outcomes, stores.memory), forget)


def open_feedback(settings: Settings, *, observers: Sequence[Observer] = ()) -> "FeedbackService":
    """The feedback function: receipts to read, outcomes to write, and nothing else."""
    from mats.edge.feedback import FeedbackService  # noqa: PLC0415 - not for discovery

    tables = Tables(region=settings.region, session=aws.session("DynamoDB"))
    record = RecordFeedback(
        receipts=DynamoReceipts(tables, settings.receipts_table, Retention(settings.receipt_days)),
        outcomes=DynamoOutcomes(tables, settings.outcomes_table, retention=Retention(settings.outcome_days)),
        days=settings.receipt_days,
    )
    return FeedbackService(record, observers_of(settings, observers))
