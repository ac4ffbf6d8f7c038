"""A registry under attack: the production path, over a registry that is filled once."""

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from experiments.attacks.measures import Observation
from experiments.attacks.scene import SEED, AttackTarget, Scene, Wave
from experiments.query_cache import QueryCache
from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned, pattern_id
from mats.domain.ranking.query import Query
from mats.domain.shortlist.rank import Shortlist
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.workbench import index_changes, without_timeouts
from mats.usecases.discover import Discover

QUERIES = 50  # Attacked queries of a registry
_NOBODY: Mapping[str, str] = MappingProxyType({})


def targets_of(dataset: Dataset, count: int = QUERIES) -> list[AttackTarget]:
    """A seeded sample of the queries that have a relevant capability in the registry."""
    registered = {registration.id: registration for registration in dataset.registrations}
    targets = [
        AttackTarget(query, registered[max(relevant, key=lambda id: (dataset.trust.get(id, -1), id))])
        for query in dataset.queries
        if (relevant := query.relevant & registered.keys())
    ]
    return random.Random(SEED).sample(targets, min(count, len(targets)))


@dataclass(kw_only=True)
class AttackedRegistry:
    """A filled registry, in which attacks are tried one after the other. `trust` is what is assigned now.

    `pipeline` is that of production, without a reranker and without timeouts.
    """

    local: LocalSystem
    registrations: Sequence[Registration]
    targets: Sequence[AttackTarget]
    trust: Mapping[Id, int]
    lag: timedelta = timedelta(0)  # Between the registrations and those of attackers
    pipeline: Discover = field(init=False)
    _before: dict[str, tuple[Id, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        discover = without_timeouts(self.local.discover)
        if encoder := discover.retrieve.encoder:
            discover = replace(discover, retrieve=replace(discover.retrieve, encoder=QueryCache(encoder)))
        self.pipeline = discover

    @contextmanager
    def changed(self, *, retrieve: Mapping[str, Any] = MappingProxyType({}), **changes: Any) -> Iterator[None]:
        """Another pipeline, by its fields and those of its `retrieve`, for the length of a `with` block."""
        pipeline, before = self.pipeline, self._before
        self.pipeline = replace(pipeline, retrieve=replace(pipeline.retrieve, **retrieve), **changes)
        self._before = {}
        try:
            yield
        finally:
            self.pipeline, self._before = pipeline, before

    @property
    def scene(self) -> Scene:
        return Scene(registrations=self.registrations, targets=self.targets, trust=self.trust)

    def assign(self, trust: Mapping[Id, int]) -> None:
        """Replace all trust."""
        changed = [id for id in {**self.trust, **trust} if self.trust.get(id) != trust.get(id)]
        for id in changed:
            self.local.stores.trust.put(id, Assigned(trust=trust.get(id)))
        index_changes(self.local, changed)
        self.trust = trust
        self._before = {}

    def shortlist(self, text: str, *, caller: str = "") -> Shortlist:
        return self.pipeline(Query(query=text[:LONGEST_QUERY]), caller=caller)

    def rank_ids(self, text: str, *, caller: str = "") -> tuple[Id, ...]:
        """The ids of all candidates, best first."""
        return tuple(result.id for result in self.shortlist(text, caller=caller).ranked)

    def observe(self, wave: Wave) -> list[Observation]:
        """The answers to the queries of one wave, which is removed at the end."""
        for target in wave.targets:
            if target.query.text not in self._before:
                self._before[target.query.text] = self.rank_ids(target.query.text)
        with self.with_items(wave.items, wave.trust, wave.verified, time=wave.at):
            return [self._observe(target, wave.attacker_ids) for target in wave.targets]

    def _observe(self, target: AttackTarget, attackers: frozenset[Id]) -> Observation:
        results = self.shortlist(target.query.text).ranked
        return Observation(
            relevant=target.query.relevant,
            ranked=tuple(result.id for result in results),
            before=self._before[target.query.text],
            attackers=attackers - target.query.relevant,
            flagged=frozenset(result.id for result in results if result.suspicious),
        )

    @contextmanager
    def with_items(
        self,
        items: Sequence[Registration],
        trust: Mapping[Id, int],
        verified: Mapping[str, str] = _NOBODY,
        *,
        time: str | None = None,
    ) -> Iterator[None]:
        """These registrations in the registry, with what is assigned, for the length of a `with` block."""
        stores = self.local.stores
        rows = {id: Assigned(trust=value) for id, value in trust.items()}
        rows |= {pattern_id(namespace): Assigned(provider=provider) for namespace, provider in verified.items()}
        stores.registry.put(items)
        concerned = [id for namespace in verified for id in stores.registry.ids(namespace=namespace)]
        ids = [item.id for item in items]
        for key, assigned in rows.items():
            stores.trust.put(key, assigned)
        index_changes(self.local, [*ids, *concerned], time)
        try:
            yield
        finally:
            for id in ids:
                stores.registry.remove(id)
            for key in rows:
                stores.trust.put(key, NOTHING_ASSIGNED)
            index_changes(self.local, [*ids, *concerned])
