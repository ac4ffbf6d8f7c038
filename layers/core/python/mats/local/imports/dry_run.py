"""A registry for dry runs, which writes nothing."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mats.domain.capability import Id
from mats.domain.placement import Placed, place, version_of
from mats.domain.registration import Registration
from mats.ports import Item, Registry


@dataclass(slots=True)
class DryRunRegistry:
    """The registry port without writing: collects the items and compares them with `registry`, if there is one."""

    registry: Registry | None = None
    items: dict[Id, Item] = field(default_factory=dict)
    placed: dict[Id, Placed] = field(default_factory=dict)

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        stored = dict(self.registry.get(ids)) if self.registry else {}
        return stored | {id: self.items[id] for id in ids if id in self.items}

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        before = self.get([registration.id for registration in registrations])
        known = {id: version_of(item) for id, item in before.items()}
        placed = {r.id: place(known.get(r.id), version_of(r.item())) for r in registrations}
        for registration in registrations:
            if placed[registration.id] is not Placed.OTHER_KIND:
                self.items[registration.id] = registration.item()
        self.placed |= placed
        return placed

    def remove(self, id: Id) -> bool:
        return self.items.pop(id, None) is not None

    def ids(self) -> Iterator[Id]:
        yield from sorted({*(self.registry.ids() if self.registry else ()), *self.items})
