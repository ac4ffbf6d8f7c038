"""The terms of an attack: a target, the registry it is in, and the registrations that an attacker adds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.evaluation.data.datasets import JudgedQuery

SEED = 7
TRUSTED = 70  # From this trust on a capability counts as trusted


class AttackTarget(NamedTuple):
    """A judged query, and the registered capability that should be first: of the relevant ones the best rated."""

    query: JudgedQuery
    item: Registration


@dataclass(kw_only=True)
class Scene:
    """The registry under attack: its targets, and the trust of its capabilities, 0 to 100."""

    registrations: Sequence[Registration]
    targets: Sequence[AttackTarget]
    trust: Mapping[Id, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Registrations that are in the registry at the same time, and the targets whose queries are asked meanwhile."""

    items: Sequence[Registration]
    targets: Sequence[AttackTarget]
    verified: Mapping[str, str] = field(default_factory=dict)
    """Providers that operators have verified, by namespace."""
    at: str | None = None  # When the items are registered; None: now

    @property
    def attacker_ids(self) -> frozenset[Id]:
        return frozenset(item.id for item in self.items)


Waves: TypeAlias = Callable[[Scene], Sequence[Wave]]
