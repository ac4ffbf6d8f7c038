"""The resources that all functions share."""

from dataclasses import dataclass

from infra.constructs.model_access import ModelAccess
from infra.constructs.network import Network
from infra.constructs.search_domain import SearchDomain
from infra.constructs.tables import MatsTables
from infra.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """The resources that all functions share. They are made before the functions and depend on none of them."""

    context: Context
    models: ModelAccess
    tables: MatsTables
    domain: SearchDomain
    network: Network | None
