"""Everything in an AWS account."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from mats.adapters import aws
from mats.adapters.dynamodb.registry import DynamoCallers, DynamoRegistry, DynamoTrust
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.bootstrap import models
from mats.bootstrap.system import System
from mats.domain.profile import Profile
from mats.ports import Encoder, Reranker, Target, Writer
from mats.settings import Settings, SettingsInvalid

if TYPE_CHECKING:
    from mats.adapters.bedrock.factory import Bedrock
    from mats.adapters.dynamodb.profiles import DynamoProfiles
    from mats.adapters.eventbridge import EventBus
    from mats.adapters.opensearch.generations import OpenSearchGenerations

_CALLER_S = 0.3
"""Who a caller is must be known before anything is searched."""


class Cloud(System):
    """The system over the tables and the domain that the stacks made."""

    def __init__(
        self,
        settings: Settings,
        *,
        encoder: Encoder | None = None,
        writer: Writer | None = None,
        reranker: Reranker | None = None,
    ) -> None:
        """Wire what these settings say; no call is made. The arguments are those of any system.

        Raises:
            NotPermitted: AWS's own settings cannot be used.
        """
        super().__init__(settings, encoder=encoder, writer=writer, reranker=reranker)
        self._session = aws.session(settings.index_endpoint)
        self._domain = Domain(settings.index_endpoint, region=settings.region, session=self._session)

    @cached_property
    def _tables(self) -> Tables:
        if not self.settings.profiles_table:
            raise SettingsInvalid("set MATS_REGISTRY_TABLE, MATS_TRUST_TABLE and MATS_PROFILES_TABLE, too")
        return Tables(region=self.settings.region, session=self._session)

    @cached_property
    def bedrock(self) -> "Bedrock | None":
        """The models on Bedrock, if the settings turn them on."""
        return models.bedrock(self.settings, self._session)

    @cached_property
    def registry(self) -> DynamoRegistry:
        """What owners wrote."""
        return DynamoRegistry(self._tables, self.settings.registry_table)

    @cached_property
    def trust(self) -> DynamoTrust:
        """What operators think of it."""
        return DynamoTrust(self._tables, self.settings.trust_table)

    @cached_property
    def profiles(self) -> "DynamoProfiles":
        """What enrichment made of it."""
        from mats.adapters.dynamodb.profiles import DynamoProfiles  # noqa: PLC0415 - not for discovery, whose start counts

        return DynamoProfiles(self._tables, self.settings.profiles_table)

    @cached_property
    def generations(self) -> "OpenSearchGenerations":
        """One index after the other."""
        from mats.adapters.dynamodb.targets import DynamoTargets  # noqa: PLC0415 - not for discovery, whose start counts
        from mats.adapters.opensearch.generations import OpenSearchGenerations  # noqa: PLC0415 - not for discovery, whose start counts

        return OpenSearchGenerations(
            domain=self._domain,
            targets=DynamoTargets(self._tables, self.settings.profiles_table),
            encoder=self._encoder_name,
            dimension=self.encoder.dimension if self.encoder else None,
        )

    @cached_property
    def index(self) -> OpenSearchIndex:
        """What searches it."""
        return OpenSearchIndex(self._domain, self._writable, self._restore, encoder=self._encoder_name)

    def _writable(self) -> Sequence[Target]:
        """Where to write; asked for with each write, so that searching alone needs no table."""
        return self.generations.writable()

    def _restore(self, target: Target) -> None:
        self.generations.restore(target)

    @property
    def _encoder_name(self) -> str:
        return self.encoder.name if self.encoder else ""

    @cached_property
    def _callers(self) -> Callable[[str], frozenset[str]] | None:
        """The audiences of IAM callers, if there is a table of them."""
        if not self.settings.callers_table:
            return None
        tables = Tables(region=self.settings.region, timeout_s=_CALLER_S, attempts=1, session=self._session)
        return DynamoCallers(tables, self.settings.callers_table, self.clock.elapsed_ms).audiences

    @cached_property
    def _bus(self) -> "EventBus":
        from mats.adapters.eventbridge import EventBus  # noqa: PLC0415 - not for discovery, whose start counts

        return EventBus(self.settings.event_bus, region=self.settings.region, session=self._session)

    def _rejects(self, rejected: Sequence[Profile]) -> None:
        """Tell the bus, if there is one."""
        if self.settings.event_bus:
            self._bus.rejected(rejected)
