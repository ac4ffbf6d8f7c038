"""A registry under attack: the production path, over a registry that is filled once."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from experiments.attacks.scene import SEED, AttackTarget, Scene, Wave
from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned, pattern_id
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.systems.workbench import index_changes
from mats.ports import Clock


@dataclass(frozen=True)
class NotBefore:
    """A clock that is at a time already, if another is not yet."""

    clock: Clock
    time: str

    def now(self) -> str:
        return max(self.clock.now(), self.time)

    def elapsed_ms(self) -> float:
        return self.clock.elapsed_ms()


def targets_of(dataset: Dataset, count: int) -> list[AttackTarget]:
    """A seeded sample of the queries that have a relevant capability in the registry."""
    registered = {registration.id: registration for registration in dataset.registrations}
    targets = [
        AttackTarget(query, registered[max(relevant, key=lambda id: (dataset.trust.get(id, -1), id))])
        for query in dataset.queries
        if (relevant := query.relevant & registered.keys())
    ]
    return random.Random(SEED).sample(targets, min(count, len(targets)))


@dataclass(kw_only=True)
class AttackedRegistry(Scene):
    """A filled registry, in which attacks are tried one after the other. `trust` is what is assigned now."""

    local: LocalSystem

    def assign(self, trust: Mapping[Id, int]) -> None:
        """Replace all trust."""
        changed = [id for id in {**self.trust, **trust} if self.trust.get(id) != trust.get(id)]
        for id in changed:
            self.local.stores.trust.put(id, Assigned(trust=trust.get(id)))
        index_changes(self.local, changed)
        self.trust = trust

    @contextmanager
    def with_wave(self, wave: Wave) -> Iterator[None]:
        """The registrations of a wave in the registry, with what is assigned, for the length of a `with` block."""
        stores = self.local.stores
        rows = {pattern_id(namespace): Assigned(provider=provider) for namespace, provider in wave.verified.items()}
        stores.registry.put(wave.items)
        concerned = [id for namespace in wave.verified for id in stores.registry.ids(namespace=namespace)]
        ids = [item.id for item in wave.items]
        for key, assigned in rows.items():
            stores.trust.put(key, assigned)
        index_changes(self.local, [*ids, *concerned], wave.at)
        try:
            yield
        finally:
            for id in ids:
                stores.registry.remove(id)
            for key in rows:
                stores.trust.put(key, NOTHING_ASSIGNED)
            index_changes(self.local, [*ids, *concerned])
