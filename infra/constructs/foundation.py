"""The resources that all functions share."""

from dataclasses import dataclass, replace
from typing import Any

from constructs import Construct

from infra.constructs.files_bucket import FilesBucket
from infra.constructs.function import Function, Limits
from infra.constructs.model_access import ModelAccess
from infra.constructs.network import Network
from infra.constructs.search_domain import SearchDomain
from infra.constructs.tables import MatsTables
from infra.context import Context
from infra.layers import core_layer, files_layer, vendor_layer
from mats.settings import Settings

_STAND_IN = "https://index.invalid"
"""In place of the domain's address while settings are validated: in a synthesis it is a token, not an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """The resources that all functions share. They are made before the functions and depend on none of them."""

    context: Context
    models: ModelAccess
    tables: MatsTables
    domain: SearchDomain | FilesBucket
    network: Network | None

    def settings(self, **others: Any) -> Settings:
        """The settings that all functions of the index share, and others."""
        context, models = self.context, self.models
        shared = Settings(
            bedrock=True,
            encoder=context.encoder_model,
            metrics=context.name if context.size != "small" else "",
            rerank_model=models.id_of(context.rerank_model),
            writer_model=models.id_of(context.writer_model),
            index_endpoint=_STAND_IN,
            index_engine=context.engine_version,
        )
        return replace(shared, **others)

    def function(
        self, scope: Construct, id: str, *, folder: str, settings: Settings, limits: Limits, snap_start: bool = False
    ) -> Function:
        """A function with the common layers, in the network if there is one."""
        address = self.domain.address
        variables = settings.to_env()
        return Function(
            scope,
            id,
            folder=folder,
            context=self.context,
            environment={name: address if value == _STAND_IN else value for name, value in variables.items()},
            limits=limits,
            layers=(core_layer, vendor_layer, *([files_layer] if self.context.files else [])),
            network=self.network,
            snap_start=snap_start,
        )
