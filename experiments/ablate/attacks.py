"""Answers under attack, with each defence and without it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from experiments.ablate.measure import Arms, Asked, Comparison, Part, compare, is_first
from experiments.attacks.registry import AttackedRegistry, NotBefore, targets_of
from experiments.attacks.scene import Wave
from experiments.attacks.table import ATTACKS, make_item
from experiments.attacks.takeovers import LATER, RATED, TAKEOVERS, Attacker
from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset
from mats.ports import Encoder

DEFENCES = ("rated", "duplicates", "seniority", "claims")
TARGETS, COPIED = 15, 30  # Attacked requests: of most attacks, and of copies
_NEW_NO_MORE = timedelta(days=60)
TWO_DAYS = timedelta(days=2)  # After the others: within a day nobody is the copy, and nothing is new


def take_over(local: LocalSystem, dataset: Dataset, arms: Arms, encoder: Encoder) -> Iterator[Comparison]:
    """The attacks on one request, beside older capabilities and beside a rated one, and copies before and after."""
    arms = arms.only(*DEFENCES)
    if not arms.without:
        return
    targets = targets_of(dataset, COPIED)
    registry = AttackedRegistry(
        local=local, registrations=dataset.registrations, targets=targets[:TARGETS], trust=dataset.trust
    )
    start = datetime.fromisoformat(local.clock.now())
    registry.assign({})
    for what, when, owners in (
        ("copy registered an hour before", timedelta(hours=-1), DEFENCES),
        ("copy registered 23 hours before", timedelta(hours=-23), DEFENCES),  # on the day before, at any time of day
        ("copy registered two days after", TWO_DAYS, ()),
    ):
        answers = list[tuple[Asked, frozenset[Id]]]()
        for target in targets:
            copy = make_item({"name": "copied", "description": target.item.description})
            answers += _under(registry, arms, [Wave(items=[copy], targets=[target])], (start + when).isoformat())
        yield from _compare(answers, f"{what}: honest first", dataset.name, honest_first, owners, Part.SILENT)
    attacker = Attacker(registry, encoder)
    texts: dict[tuple[str, str], Sequence[Wave]] = {}
    for way, lag in {"older ones": LATER, "ones rated since": timedelta(0)}.items():
        registry.assign({} if way == "older ones" else {target.item.id: RATED for target in registry.targets})
        at, answers = (start + lag).isoformat(), list[tuple[Asked, frozenset[Id]]]()
        for name, attack in TAKEOVERS.items():
            for target in map(attack.ask, registry.targets):
                key = (name, target.query.id)
                if key not in texts:
                    texts[key] = [Wave(items=attack.register(attacker, target), targets=[target])]
                answers += _under(registry, arms, texts[key], at)
        leads, keeps = ({"seniority"}, set[str]()) if way == "older ones" else (set[str](), {"rated"})
        yield from _compare(answers, f"takeovers beside {way}: attacker not first", dataset.name, not_first, leads)
        yield from _compare(answers, f"takeovers beside {way}: places kept", dataset.name, places_kept, keeps)
    registry.assign(dataset.trust)


def attack_with_table(local: LocalSystem, dataset: Dataset, arms: Arms) -> Iterator[Comparison]:
    """The attacks of the table: copies and claims for `claims`, floods for `duplicates`."""
    arms = arms.only(*DEFENCES)
    if not arms.without:
        return
    targets = targets_of(dataset, TARGETS)
    registry = AttackedRegistry(local=local, registrations=dataset.registrations, targets=targets, trust=dataset.trust)
    now = datetime.fromisoformat(local.clock.now())
    later = (now + TWO_DAYS).isoformat()
    afterwards = arms.at(
        NotBefore(local.clock, (now + _NEW_NO_MORE).isoformat())
    )  # else seniority alone would keep copies back
    for trust, assigned in {"targets rated": {target.item.id: RATED for target in targets}, "none rated": {}}.items():
        registry.assign(assigned)
        answers = {name: list(_under(registry, arms, waves(registry))) for name, waves in ATTACKS.items()}
        copies = [
            one
            for name, waves in ATTACKS.items()
            if "copy" in name or "claimed" in name
            for one in _under(registry, afterwards, waves(registry), later)
        ]
        floods = [one for name, found in answers.items() if "flood" in name for one in found]
        everything = [one for found in answers.values() for one in found]
        yield from _compare(floods, f"floods, {trust}: places kept", dataset.name, places_kept, {"duplicates"})
        yield from _compare(
            copies, f"copies and claims, {trust}: attacker not first", dataset.name, not_first, {"claims"}
        )
        harmed = {"rated"} if assigned else set()  # here nothing crowds the rated ones out
        what = f"all attacks of the table, {trust}: attacker not first"
        yield from _compare(everything, what, dataset.name, not_first, harmed, Part.SILENT)
    registry.assign(dataset.trust)


def _under(
    registry: AttackedRegistry, arms: Arms, waves: Sequence[Wave], at: str | None = None
) -> Iterator[tuple[Asked, frozenset[Id]]]:
    """The answers to the targets of each wave while it is registered, with whose places are the attacker's."""
    asked = arms.at(NotBefore(arms.whole.stages.clock, at)) if at else arms
    for wave in waves:
        with registry.with_wave(replace(wave, at=at) if at else wave):
            for target in wave.targets:
                yield asked.ask(target.query), wave.attacker_ids - target.query.relevant


_Answers = Sequence[tuple[Asked, frozenset[Id]]]
_Value = Callable[[Asked, frozenset[Id], Sequence[Id]], float]


def not_first(asked: Asked, attackers: frozenset[Id], ranked: Sequence[Id]) -> float:
    return float(attackers.isdisjoint(ranked[:1]))


def honest_first(asked: Asked, attackers: frozenset[Id], ranked: Sequence[Id]) -> float:
    return is_first(asked.query, ranked)


def places_kept(asked: Asked, attackers: frozenset[Id], ranked: Sequence[Id]) -> float:
    """The candidates that are not the attacker's."""
    return float(sum(id not in attackers for id in ranked))


def _compare(
    answers: _Answers, what: str, name: str, value: _Value, owners: Collection[str] = (), part: Part = Part.OWN
) -> Iterator[Comparison]:
    """The comparison of every defence: of the `owners` as this part, of the others as ATTACK."""
    for policy in answers[0][0].without if answers else ():
        pairs = [(value(one, who, one.whole), value(one, who, one.without[policy])) for one, who in answers]
        yield compare(policy, part if policy in owners else Part.ATTACK, what, name, pairs)
