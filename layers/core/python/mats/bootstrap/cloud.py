"""The system in an AWS account."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from mats.adapters import aws
from mats.adapters.clock import SystemClock
from mats.adapters.dynamodb.callers import DynamoCallers
from mats.adapters.dynamodb.registry import DynamoRegistry, DynamoTrust
from mats.adapters.dynamodb.switch import DynamoModelSwitch
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.adapters.opensearch.memory import OpenSearchMemory
from mats.adapters.retention import Retention
from mats.bootstrap.models import ConfiguredModels, configured_models
from mats.bootstrap.system import System
from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.ranking.query import Filter
from mats.ports import Encoder, NamespaceChange, Target
from mats.settings import Settings, SettingsInvalid

if TYPE_CHECKING:
    from boto3.session import Session

    from mats.adapters.background_receipts import BackgroundReceipts
    from mats.adapters.dynamodb.outcomes import DynamoOutcomes
    from mats.adapters.dynamodb.profiles import DynamoProfiles
    from mats.adapters.dynamodb.receipts import DynamoReceipts
    from mats.adapters.dynamodb.tallies import DynamoTallies
    from mats.adapters.eventbridge import EventBus
    from mats.adapters.opensearch.generations import OpenSearchGenerations
    from mats.usecases.spread_change import SpreadChange

_ONLINE_TIMEOUT_S = 0.3
"""Of reads that an answer waits for: audiences and switches must be known before the search begins."""


def cloud_system(settings: Settings, *, encoder: Encoder | None = None) -> "CloudSystem":
    """The system over the tables and the domain of the stacks; makes no call.

    Args:
        settings: They name the domain and the tables.
        encoder: Replaces the one that the settings name.

    Raises:
        NotPermitted: AWS's own settings cannot be used.
    """
    session = aws.session(settings.index_endpoint)
    models = configured_models(settings, session, encoder=encoder)
    return System(settings, models, CloudStores(settings, models, session))


class CloudStores:
    """Tables of DynamoDB and a domain of OpenSearch. Discovery uses index, callers, switches, receipts and tallies."""

    def __init__(self, settings: Settings, models: ConfiguredModels, session: "Session") -> None:
        self._settings, self._models, self._session = settings, models, session
        self._domain = Domain(settings.index_endpoint, region=settings.region, session=session)

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

        retention = Retention(self._settings.versions_days)
        return DynamoProfiles(self._tables, self._settings.profiles_table, retention)

    @cached_property
    def index(self) -> OpenSearchIndex:
        """Reads the generations only when it writes."""
        return OpenSearchIndex(
            self._domain,
            self._writable,
            self._restore,
            encoder=self._models.encoder_name,
            engine=self._settings.index_engine,
        )

    @cached_property
    def memory(self) -> OpenSearchMemory | None:
        encoder = self._models.encoder
        return (
            OpenSearchMemory(domain=self._domain, encoder=encoder.name, dimension=encoder.dimension)
            if encoder
            else None
        )

    @cached_property
    def generations(self) -> "OpenSearchGenerations":
        from mats.adapters.dynamodb.targets import DynamoTargets  # noqa: PLC0415 - not for discovery
        from mats.adapters.opensearch.generations import OpenSearchGenerations  # noqa: PLC0415 - not for discovery

        encoder = self._models.encoder
        return OpenSearchGenerations(
            domain=self._domain,
            targets=DynamoTargets(self._tables, self._settings.profiles_table),
            encoder=self._models.encoder_name,
            dimension=encoder.dimension if encoder else None,
        )

    def _writable(self) -> Sequence[Target]:
        return self.generations.writable()

    def _restore(self, target: Target) -> None:
        self.generations.restore(target)

    @cached_property
    def audiences_of(self) -> Callable[[str], frozenset[str]] | None:
        if not self._settings.callers_table:
            return None
        return DynamoCallers(self._online, self._settings.callers_table, SystemClock().elapsed_ms).audiences

    @cached_property
    def model_switch(self) -> DynamoModelSwitch | None:
        table = self._settings.switches_table
        return DynamoModelSwitch(self._online, table) if table else None

    @cached_property
    def early_receipts(self) -> "DynamoReceipts | None":
        settings = self._settings
        if not (settings.receipts_table and settings.receipt_days):
            return None
        from mats.adapters.dynamodb.receipts import DynamoReceipts  # noqa: PLC0415 - not for enrichment

        return DynamoReceipts(self._online, settings.receipts_table, Retention(settings.receipt_days))

    @cached_property
    def receipts(self) -> "BackgroundReceipts | None":
        if self.early_receipts is None:
            return None
        from mats.adapters.background_receipts import BackgroundReceipts  # noqa: PLC0415 - not for enrichment

        return BackgroundReceipts(self.early_receipts)

    @cached_property
    def outcomes(self) -> "DynamoOutcomes | None":
        settings = self._settings
        if not (settings.outcomes_table and settings.tallies_table):
            return None
        from mats.adapters.dynamodb.outcomes import DynamoOutcomes  # noqa: PLC0415 - not for discovery

        tables = Tables(region=settings.region, session=self._session)
        return DynamoOutcomes(tables, settings.outcomes_table, settings.tallies_table)

    @cached_property
    def tally_book(self) -> "DynamoTallies | None":
        if not self._settings.tallies_table:
            return None
        from mats.adapters.dynamodb.tallies import DynamoTallies  # noqa: PLC0415 - not for enrichment

        return DynamoTallies(self._online, self._settings.tallies_table)

    @cached_property
    def _bus(self) -> "EventBus":
        from mats.adapters.eventbridge import EventBus  # noqa: PLC0415 - not for discovery

        return EventBus(self._settings.event_bus, region=self._settings.region, session=self._session)

    def openers(self) -> Sequence[Callable[[], object]]:
        settings = self._settings
        used = settings.callers_table or settings.switches_table or settings.receipts_table
        online = [self._online.open_connection] if used else []
        return [*online, lambda: self.index.lexical(["connect"], Filter(), depth=1)]

    def announce_rejections(self, rejected: Sequence[Profile]) -> None:
        if self._settings.event_bus:
            self._bus.announce_rejections(rejected)

    def send_changes(self, ids: Sequence[Id]) -> None:
        """Put a change of each of these into the event path.

        Raises:
            DependencyFailed: the bus did not accept all of them.
        """
        self._bus.send_changes(ids)

    @cached_property
    def spread(self) -> "SpreadChange":
        from mats.usecases.spread_change import SpreadChange  # noqa: PLC0415 - not for discovery

        return SpreadChange(
            registry=self.registry,
            send=self.send_changes,
            send_rest=self._send_namespace_change,
        )

    def _send_namespace_change(self, change: NamespaceChange) -> None:
        self._bus.send_namespace_change(change)

    def close(self) -> None:
        """Does nothing: clients close their connections themselves."""


CloudSystem: TypeAlias = System[CloudStores]
