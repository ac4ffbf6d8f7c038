"""Keep places among the candidates for what operators trust: docs/decisions/0095."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.capability.capability import Id
from mats.domain.policies.policy import Ask, Order, Policy
from mats.domain.profile.index_keys import TRUSTED_KEYS
from mats.domain.search.lookups import Lookups, Vector

_MOST_READ = 1_000  # Capabilities that operators trust, of a registry, that are known beside a request
_PLACES = 3  # Of the best rated ones
_AS_NEAR, _MOST_AS_NEAR = 0.9, 4
_COMPARABLE = 0.3  # Share of the best cosine from which on a rated one is about the request at all
"""Share of the nearest one's cosine from which on what is unrated is as near, and how many of it come first."""


@dataclass(frozen=True)
class Rated(Policy):
    """Floods of rewordings are as near as what they imitate, but nobody has rated them."""

    name: ClassVar = "rated"
    reads: ClassVar = ("look",)

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Collection[Id]:
        return frozenset(index.exact(TRUSTED_KEYS, ask.admitted, most=_MOST_READ))

    def nominate(self, order: Order, evidence: Collection[Id] | None) -> Order:
        best = [id for id in order.ids if id in (evidence or ())][:_PLACES]
        if not best:
            return order
        cosine, ids = order.cosine, order.ids
        nearest = max(cosine.get(id, 0.0) for id in best)
        near = [id for id in ids if id not in (evidence or ()) and cosine.get(id, 0.0) >= _AS_NEAR * nearest]
        if cosine and (
            nearest < _COMPARABLE * max(cosine.values()) or sum(id in near for id in ids[: order.k]) <= _MOST_AS_NEAR
        ):
            return order
        behind = frozenset(near[_MOST_AS_NEAR:]) if cosine else frozenset[Id]()
        ids = [*(id for id in ids if id not in behind), *(id for id in ids if id in behind)]
        return replace(order, ids=list(dict.fromkeys((*ids[: order.k - _PLACES], *best, *ids))))
