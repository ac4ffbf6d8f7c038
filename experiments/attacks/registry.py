"""A registry under attack: the production path, over a registry that is filled once; and the measures of an attack."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from experiments.attacks.scene import SEED, AttackTarget, Scene, Wave
from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.capability.suspicion import findings
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned, pattern_id
from mats.domain.search.query import Query
from mats.domain.search.shortlist import Shortlist
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.workbench import index_changes, without_timeouts
from mats.ports import Clock
from mats.usecases.discover import Discover

QUERIES = 50  # Attacked queries of a registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The answer to one query under attack."""

    relevant: frozenset[Id]
    ranked: tuple[Id, ...]  # All candidates, best first
    before: tuple[Id, ...]  # Those without the attack
    attackers: frozenset[Id]  # Whose places are counted
    flagged: frozenset[Id]  # The candidates with a reason for caution


@dataclass(frozen=True)
class NotBefore:
    """A clock that is at a time already, if another is not yet."""

    clock: Clock
    time: str

    def now(self) -> str:
        return max(self.clock.now(), self.time)

    def elapsed_ms(self) -> float:
        return self.clock.elapsed_ms()


def measure_answers(observations: Sequence[Observation]) -> dict[str, float]:
    """Counts of queries, but for `places`, the mean number of attackers among the candidates.

    `rank1` counts the queries with an attacker first, `flagged` those with an attacker that has a reason for caution
    among the candidates. `lost@1` and `lost@15` are the matches before minus those under attack: below 0 if the attack
    helps the honest.
    """
    before = count_matches((one.relevant, one.before) for one in observations)
    after = count_matches((one.relevant, one.ranked) for one in observations)
    places = sum(id in one.attackers for one in observations for id in one.ranked)
    return {
        "queries": len(observations),
        "rank1": sum(not one.attackers.isdisjoint(one.ranked[:1]) for one in observations),
        "places": round(places / len(observations), 2),
        "flagged": sum(not one.flagged.isdisjoint(one.attackers) for one in observations),
        "lost@1": before["match@1"] - after["match@1"],
        "lost@15": before["match@15"] - after["match@15"],
    }


def count_matches(answers: Iterable[tuple[frozenset[Id], Sequence[Id]]]) -> dict[str, int]:
    """Answers with a relevant capability first, and among all candidates."""
    answers = list(answers)
    return {
        "match@1": sum(not relevant.isdisjoint(ranked[:1]) for relevant, ranked in answers),
        "match@15": sum(not relevant.isdisjoint(ranked) for relevant, ranked in answers),
    }


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
class AttackedRegistry(Scene):
    """A filled registry, in which attacks are tried one after the other. `trust` is what is assigned now.

    `pipeline` is that of production, without a reranker and without timeouts.
    """

    local: LocalSystem
    attacked_at: str = ""  # When attackers register (ISO 8601, UTC)
    pipeline: Discover = field(init=False)
    _before: dict[str, tuple[Id, ...]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.pipeline = without_timeouts(self.local.discover)

    @contextmanager
    def changed(self, **changes: Any) -> Iterator[None]:
        """Another pipeline, by its fields, for the length of a `with` block."""
        pipeline, before = self.pipeline, self._before
        self.pipeline = replace(pipeline, **changes)
        self._before = {}
        try:
            yield
        finally:
            self.pipeline, self._before = pipeline, before

    def assign(self, trust: Mapping[Id, int]) -> None:
        """Replace all trust."""
        changed = [id for id in {**self.trust, **trust} if self.trust.get(id) != trust.get(id)]
        for id in changed:
            self.local.stores.trust.put(id, Assigned(trust=trust.get(id)))
        index_changes(self.local, changed)
        self.trust = trust
        self._before = {}

    def shortlist(self, text: str, *, caller: str = "") -> Shortlist:
        return self.pipeline.answer(Query(query=text[:LONGEST_QUERY]), caller=caller)

    def rank_ids(self, text: str, *, caller: str = "") -> tuple[Id, ...]:
        """The ids of all candidates, best first."""
        return tuple(result.id for result in self.shortlist(text, caller=caller).ranked)

    def observe(self, wave: Wave) -> list[Observation]:
        """The answers to the queries of one wave, which is removed at the end."""
        for target in wave.targets:
            if target.query.text not in self._before:
                self._before[target.query.text] = self.rank_ids(target.query.text)
        with self.with_wave(wave):
            answers = [(target.query, self.shortlist(target.query.text).ranked) for target in wave.targets]
        return [
            Observation(
                relevant=query.relevant,
                ranked=tuple(result.id for result in results),
                before=self._before[query.text],
                attackers=wave.attacker_ids - query.relevant,
                flagged=frozenset(result.id for result in results if result.suspicious),
            )
            for query, results in answers
        ]

    @contextmanager
    def with_wave(self, wave: Wave) -> Iterator[None]:
        """The registrations of a wave in the registry, with what is assigned, for the length of a `with` block."""
        stores = self.local.stores
        rows = {id: Assigned(trust=value) for id, value in wave.trust.items()}
        rows |= {pattern_id(namespace): Assigned(provider=provider) for namespace, provider in wave.verified.items()}
        stores.registry.put(wave.items)
        concerned = [id for namespace in wave.verified for id in stores.registry.ids(namespace=namespace)]
        ids = [item.id for item in wave.items]
        for key, assigned in rows.items():
            stores.trust.put(key, assigned)
        index_changes(self.local, [*ids, *concerned], wave.at)
        pipeline = self.pipeline
        if wave.at:
            clock = NotBefore(pipeline.stages.clock, wave.at)
            self.pipeline = replace(pipeline, stages=replace(pipeline.stages, clock=clock))
        try:
            yield
        finally:
            self.pipeline = pipeline
            for id in ids:
                stores.registry.remove(id)
            for key in rows:
                stores.trust.put(key, NOTHING_ASSIGNED)
            index_changes(self.local, [*ids, *concerned])


def count_flags(registry: AttackedRegistry, dataset: Dataset) -> dict[str, int]:
    """Registrations that are flagged when they are registered, and those that answers to the set's queries flag.

    The latter are counted once each; `ever` are those of either.
    """
    at_once = {item.id for item in dataset.registrations if findings(item)}
    in_answers = {
        result.id
        for query in dataset.queries
        for result in registry.shortlist(query.text).ranked
        if set(result.suspicious) - set(result.candidate.profile.suspicious)
    }
    return {
        "registrations": len(dataset.registrations),
        "at_registration": len(at_once),
        "in_answers": len(in_answers),
        "ever": len(at_once | in_answers),
    }
