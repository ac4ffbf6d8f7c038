"""What the functions stand on."""

from dataclasses import dataclass

from infra.constructs.model_access import ModelAccess
from infra.constructs.network import Network
from infra.constructs.search_domain import SearchDomain
from infra.constructs.tables import MatsTables
from infra.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """The parts that every function shares: made first, and depending on no function."""

    context: Context
    models: ModelAccess
    tables: MatsTables
    domain: SearchDomain
    network: Network | None
