"""Keep places among the candidates for what operators trust: docs/decisions/0095."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from mats.domain.capability.capability import Id
from mats.domain.policies.policy import Ask, Order, Policy
from mats.domain.profile.index_keys import TRUSTED_KEYS
from mats.domain.search.lookups import Lookups, Vector

_MOST_READ = 1_000  # Capabilities that operators trust, of a registry, that are known beside a request
_PLACES = 3  # Of the best rated ones
_AS_NEAR, _MOST_AS_NEAR = 0.9, 4
"""Share of the nearest one's cosine from which on what is unrated is as near, and how many of it come first."""
_ABOUT_IT = 0.45  # Share of the best cosine from which on a rated one is about the request at all


class Trusted(NamedTuple):
    """The ids that operators trust, and whether the encoder does not read the request."""

    ids: Collection[Id]
    foreign: bool


@dataclass(frozen=True)
class Rated(Policy):
    """Floods of rewordings are as near as what they imitate, but nobody has rated them.

    Only where unrated hits as near as the rated ones crowd all of these out. Without an encoder that reads the request
    nothing tells what is near, and the places are kept.
    """

    name: ClassVar = "rated"
    reads: ClassVar = ("look",)

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Trusted:
        return Trusted(frozenset(index.exact(TRUSTED_KEYS, ask.admitted, most=_MOST_READ)), ask.foreign)

    def nominate(self, order: Order, evidence: Trusted | None) -> Order:
        if not evidence:
            return order
        cosine, ids, trusted = order.cosine, order.ids, evidence.ids
        best = [id for id in ids if id in trusted][:_PLACES]
        if not best or best[0] in ids[: order.k]:
            return order
        if cosine and not evidence.foreign:
            nearest = max(cosine.get(id, 0.0) for id in best)
            near = [id for id in ids if id not in trusted and cosine.get(id, 0.0) >= _AS_NEAR * nearest]
            crowds = len(frozenset(near).intersection(ids[: order.k])) > _MOST_AS_NEAR
            if not crowds or nearest < _ABOUT_IT * max(cosine.values()):
                return order
            behind = frozenset(near[_MOST_AS_NEAR:])
            ids = [*(id for id in ids if id not in behind), *(id for id in ids if id in behind)]
        return replace(order, ids=list(dict.fromkeys((*ids[: order.k - _PLACES], *best, *ids))))
