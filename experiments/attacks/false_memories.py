"""False successes of one caller, remembered for the very requests that others ask."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.attacks.items import SEED
from experiments.attacks.moves import lost_matches, most_moved
from experiments.attacks.run import AttackedRegistry
from experiments.attacks.scene import AttackTarget
from mats.domain.capability.capability import Id
from mats.domain.learning.remembered import Near, Remembered
from mats.ports import Vector

MEMORIES = 100
_ATTACKER, _ASKING = "attacker", "somebody else"
_CROWD, _REPORTERS = 20, 5

Kept = Sequence[tuple[Vector, Remembered]]
"""Remembered requests with their vectors."""


class ListedMemory:
    """The port `Memory` over a list."""

    def __init__(self, kept: Kept) -> None:
        self._memories = [memory for _, memory in kept]
        self._vectors = np.array([vector for vector, _ in kept], np.float32)

    def nearest(self, vector: Vector, *, depth: int, without: Collection[str] = ()) -> Sequence[Near]:
        if not self._memories:
            return []
        cosines = self._vectors @ np.asarray(vector, np.float32)
        near = [Near(float(cosine), memory) for cosine, memory in zip(cosines, self._memories, strict=True)]
        left = [each for each in near if each.memory.caller not in without]
        return sorted(left, key=lambda each: (-each.similarity, each.memory.query_id))[:depth]

    def with_outcomes(self, ids: Collection[Id], caller: str, *, without: Collection[str] = ()) -> Mapping[Id, int]:
        callers: dict[Id, Counter[str]] = {}
        for memory in self._memories:
            for id in memory.used.intersection(ids) if memory.caller not in without else ():
                callers.setdefault(id, Counter())[memory.caller] += 1
        return {id: known[caller] for id, known in callers.items() if known[caller] or len(known) > 1}


@dataclass(frozen=True, slots=True)
class MemoryAttack:
    """What one caller claims to have used: a function of a target, its ranked candidates and all registered ids."""

    name: str
    used: Callable[[AttackTarget, Sequence[Id], Sequence[Id]], frozenset[Id]]


def _wrong(position: int) -> Callable[[AttackTarget, Sequence[Id], Sequence[Id]], frozenset[Id]]:
    def choose(target: AttackTarget, ranked: Sequence[Id], everything: Sequence[Id]) -> frozenset[Id]:
        return frozenset([id for id in ranked if id not in target.query.relevant][position : position + 1 or None])

    return choose


def _elsewhere(target: AttackTarget, ranked: Sequence[Id], everything: Sequence[Id]) -> frozenset[Id]:
    return frozenset([id for id in everything if id not in ranked and id not in target.query.relevant][:1])


MEMORY_ATTACKS = (
    MemoryAttack("100 remembered successes of the best wrong one", _wrong(0)),
    MemoryAttack("100 remembered successes of the last one", _wrong(-1)),
    MemoryAttack("100 remembered successes of one that is not found", _elsewhere),
)


def honest_memories(registry: AttackedRegistry, targets: Sequence[AttackTarget]) -> Kept:
    """The capabilities that a seeded crowd used for these requests: right ones that were shown."""
    rng, kept = random.Random(SEED), list[tuple[Vector, Remembered]]()
    for number, target in enumerate(targets):
        ranked = registry.rank_ids(target.query.text)
        used = target.query.relevant.intersection(ranked)
        for caller in rng.sample(range(_CROWD), _REPORTERS) if used else ():
            kept.append((_vector(registry, target), _memory(f"honest {number} {caller}", str(caller), used)))
    return kept


def _vector(registry: AttackedRegistry, target: AttackTarget) -> Vector:
    encoder = registry.pipeline.retrieve.encoder
    if encoder is None:
        raise ValueError("the memory needs an encoder")
    return encoder.encode_query(target.query.text)


def _memory(query_id: str, caller: str, used: frozenset[Id]) -> Remembered:
    return Remembered(
        query_id=query_id, text="", caller=caller, audiences=frozenset(), at="2026-01-01T00:00:00+00:00", used=used
    )


def remembered_rows(registry: AttackedRegistry, honest: Kept) -> list[dict[str, Any]]:
    """A row for each attack, as of `false_reports`; the attacker asks each target's own words."""
    if registry.pipeline.retrieve.encoder is None:
        return []
    targets, everything = registry.targets, sorted(item.id for item in registry.registrations)
    before = [_rank(registry, target, honest, _ASKING) for target in targets]
    own_before = [_rank(registry, target, honest, _ATTACKER) for target in targets]
    return [_row(registry, attack, honest, (before, own_before), everything) for attack in MEMORY_ATTACKS]


def _row(
    registry: AttackedRegistry,
    attack: MemoryAttack,
    honest: Kept,
    before: tuple[Sequence[Sequence[Id]], Sequence[Sequence[Id]]],
    everything: Sequence[Id],
) -> dict[str, Any]:
    after, own = [], []
    for target, ranked in zip(registry.targets, before[0], strict=True):
        vector, used = _vector(registry, target), attack.used(target, ranked, everything)
        false = [(vector, _memory(f"false {number:03}", _ATTACKER, used)) for number in range(MEMORIES)]
        after.append(_rank(registry, target, [*honest, *false], _ASKING))
        own.append(_rank(registry, target, [*honest, *false], _ATTACKER))
    moves = [most_moved(one, other) for one, other in zip(before[0], after, strict=True)]
    return {
        "attack": attack.name,
        "answers": len(moves),
        "moved": max(moves, default=0),
        "moved_answers": sum(places > 1 for places in moves),
        "lost@1": lost_matches(registry.targets, before[0], after),
        "own_moved": max(map(most_moved, before[1], own), default=0),
    }


def _rank(registry: AttackedRegistry, target: AttackTarget, kept: Kept, caller: str) -> Sequence[Id]:
    with registry.remembering(ListedMemory(kept)):
        return registry.rank_ids(target.query.text, caller=caller)
