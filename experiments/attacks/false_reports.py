"""False reports of one caller: how far they move capabilities in the answers of others."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from experiments.attacks.false_memories import honest_memories, remembered_rows
from experiments.attacks.items import SEED
from experiments.attacks.moves import lost_matches, most_moved
from experiments.attacks.run import AttackedRegistry
from experiments.attacks.scene import AttackTarget
from mats.domain.capability.capability import Id
from mats.domain.learning.reliability import Tally, weight_at

REPORTS = 100
ATTACKER, ASKING = "attacker", "somebody else"
_CROWD, _REPORTERS = 20, 5
"""Honest callers, and how many of them ask each query."""
_UNLUCKY, _MISTAKEN = 0.1, 0.3
"""Shares of honest callers for whom the right capability fails, and for whom another first one does."""

Outcomes: TypeAlias = Mapping[tuple[Id, str], tuple[float, float]]
"""Successes and failures by capability and caller."""
Ranked: TypeAlias = Sequence[Id]


@dataclass(frozen=True, slots=True)
class ReportAttack:
    """The reports of one caller, from a target and its ranked candidates: successes and failures by capability."""

    name: str
    reports: Callable[[AttackTarget, Ranked], Mapping[Id, tuple[float, float]]]
    at_once: bool = False
    """Whether it attacks all targets together, with so many reports in total."""


def _right(target: AttackTarget, ranked: Ranked) -> list[Id]:
    return [id for id in ranked if id in target.query.relevant][:1]


def _wrong(target: AttackTarget, ranked: Ranked) -> list[Id]:
    return [id for id in ranked if id not in target.query.relevant]


def _fail_right(target: AttackTarget, ranked: Ranked) -> dict[Id, tuple[float, float]]:
    return dict.fromkeys(_right(target, ranked), (0, REPORTS))


def _praise(position: int) -> Callable[[AttackTarget, Ranked], dict[Id, tuple[float, float]]]:
    return lambda target, ranked: dict.fromkeys(_wrong(target, ranked)[position : position + 1 or None], (REPORTS, 0))


def _both(target: AttackTarget, ranked: Ranked) -> dict[Id, tuple[float, float]]:
    half = REPORTS / 2
    return {
        **dict.fromkeys(_right(target, ranked), (0, half)),
        **dict.fromkeys(_wrong(target, ranked)[:1], (half, 0)),
    }


def _fail_a_few(target: AttackTarget, ranked: Ranked) -> dict[Id, tuple[float, float]]:
    return dict.fromkeys(_right(target, ranked), (0, REPORTS / 50))


REPORT_ATTACKS = (
    ReportAttack("100 failures of the right capability", _fail_right),
    ReportAttack("100 successes of the best wrong one", _praise(0)),
    ReportAttack("100 successes of the last one", _praise(-1)),
    ReportAttack("50 failures of the right, 50 successes of the best wrong one", _both),
    ReportAttack("2 failures of each of 50 right capabilities", _fail_a_few, at_once=True),
)


def honest_reports(registry: AttackedRegistry, targets: Sequence[AttackTarget]) -> Outcomes:
    """The reports of a seeded crowd on the answers to these targets."""
    rng, outcomes = random.Random(SEED), dict[tuple[Id, str], tuple[float, float]]()
    for target in targets:
        ranked = registry.rank_ids(target.query.text)
        for caller in rng.sample(range(_CROWD), _REPORTERS):
            tried = {id: rng.random() >= _UNLUCKY for id in _right(target, ranked)}
            if ranked and ranked[0] not in tried and rng.random() < _MISTAKEN:
                tried[ranked[0]] = False
            for id, succeeded in tried.items():
                good, bad = outcomes.get((id, str(caller)), (0.0, 0.0))
                outcomes[id, str(caller)] = (good + succeeded, bad + (not succeeded))
    return outcomes


def false_reports(registry: AttackedRegistry, crowd: Sequence[AttackTarget]) -> dict[str, Any]:
    """Each attack, where nobody else reports and where a crowd does.

    `moved` is the most places that any candidate of any answer moves for somebody else, `moved_answers` the number of
    answers in which one moves more than a place, and `lost@1` the matches that are lost. `own_moved` is as `moved`, in
    the answers of the caller who sends the reports.
    """
    reports = {"nobody else reports": {}, "a crowd reports": honest_reports(registry, crowd)}
    remembered = {"nobody else reports": [], "a crowd reports": honest_memories(registry, crowd)}
    return {
        name: _rows(registry, honest) + remembered_rows(registry, remembered[name]) for name, honest in reports.items()
    }


def _rows(registry: AttackedRegistry, honest: Outcomes) -> list[dict[str, Any]]:
    before = _rank_all(registry, honest, ASKING)
    own_before = _rank_all(registry, honest, ATTACKER)
    rows = []
    for attack in REPORT_ATTACKS:
        made = [attack.reports(target, ids) for target, ids in zip(registry.targets, before, strict=True)]
        waves = [{id: both for each in made for id, both in each.items()}] * len(made) if attack.at_once else made
        outcomes = [{**honest, **{(id, ATTACKER): both for id, both in wave.items()}} for wave in waves]
        after = [
            _rank(registry, target, known, ASKING) for target, known in zip(registry.targets, outcomes, strict=True)
        ]
        own = [
            _rank(registry, target, known, ATTACKER) for target, known in zip(registry.targets, outcomes, strict=True)
        ]
        moves = [most_moved(one, other) for one, other in zip(before, after, strict=True)]
        rows.append(
            {
                "attack": attack.name,
                "answers": len(moves),
                "moved": max(moves, default=0),
                "moved_answers": sum(places > 1 for places in moves),
                "lost@1": lost_matches(registry.targets, before, after),
                "own_moved": max(map(most_moved, own_before, own), default=0),
            }
        )
    return rows


def _rank_all(registry: AttackedRegistry, outcomes: Outcomes, asking: str) -> list[tuple[Id, ...]]:
    return [_rank(registry, target, outcomes, asking) for target in registry.targets]


def _rank(registry: AttackedRegistry, target: AttackTarget, outcomes: Outcomes, asking: str) -> tuple[Id, ...]:
    with registry.with_reports(tallies_of(outcomes, registry.local.clock.now())):
        return registry.rank_ids(target.query.text, caller=asking)


def tallies_of(outcomes: Outcomes, now: str) -> Callable[[Collection[Id]], Mapping[Id, Sequence[Tally]]]:
    """A reader of tallies of outcomes that happened now."""
    weight, tallies = weight_at(now), dict[Id, list[Tally]]()
    for (id, caller), (good, bad) in outcomes.items():
        tallies.setdefault(id, []).append(Tally(caller=caller, successes=good * weight, failures=bad * weight))
    return lambda ids: {id: tallies[id] for id in ids if id in tallies}
