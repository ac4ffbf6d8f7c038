"""False reports, in the stores of production: how far they move capabilities in the answers of others."""

import random
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from experiments.attacks.registry import AttackedRegistry, count_matches
from experiments.attacks.scene import SEED, AttackTarget
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.memory import SqliteMemory
from mats.adapters.sqlite.receipts import SqliteOutcomes
from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt, pack_vector
from mats.domain.policies.memory import Memory
from mats.domain.policies.reliability import Reliability

REPORTS = 100
ATTACKER, ASKING = "attacker", "somebody else"
_CROWD, _REPORTERS = 20, 5  # Honest callers, and how many of them ask each query
_UNLUCKY, _MISTAKEN = 0.1, 0.3
"""Shares of honest callers for whom the right capability fails, and for whom another first one does."""
_ENCODER = "attacks"

Ranked: TypeAlias = Sequence[Id]
Claims: TypeAlias = Mapping[Id, Event]
Report: TypeAlias = tuple[AttackTarget, str, Claims, bool]
"""An answer's target, the caller, what it claims, and whether the memory has the request."""


@dataclass(frozen=True, slots=True)
class ReportAttack:
    """Reports of one caller, or of several, on each of many answers."""

    name: str
    fails: bool = False  # The right capability
    praises: int | None = None  # A wrong candidate, by its place among the wrong ones
    elsewhere: bool = False  # What it praises is not found
    answers: int = REPORTS
    remembered: bool = False  # The answers are to the very requests of others, which the memory then has
    at_once: bool = False  # All targets are attacked together
    callers: int = 1

    def claims(self, target: AttackTarget, ranked: Ranked, everything: Ranked) -> Claims:
        """From a target, its ranked candidates and all registered ids."""
        relevant = target.query.relevant
        found = [id for id in everything if id not in ranked] if self.elsewhere else ranked
        wrong = [id for id in found if id not in relevant]
        praised = [] if self.praises is None else wrong[self.praises : self.praises + 1 or None]
        return {
            **(_right(target, ranked, Event.FAILED) if self.fails else {}),
            **dict.fromkeys(praised, Event.SUCCEEDED),
        }


def _right(target: AttackTarget, ranked: Ranked, event: Event) -> dict[Id, Event]:
    """The best relevant candidate, if there is one."""
    return dict.fromkeys([id for id in ranked if id in target.query.relevant][:1], event)


REPORT_ATTACKS = (
    ReportAttack("100 failures of the right capability", fails=True),
    ReportAttack("100 successes of the best wrong one", praises=0),
    ReportAttack("100 successes of the last one", praises=-1),
    ReportAttack(
        "50 failures of the right, 50 successes of the best wrong one", fails=True, praises=0, answers=REPORTS // 2
    ),
    ReportAttack("2 failures of each of 50 right capabilities", fails=True, answers=2, at_once=True),
    ReportAttack("100 remembered successes of the best wrong one", praises=0, remembered=True),
    ReportAttack("100 remembered successes of the last one", praises=-1, remembered=True),
    ReportAttack("100 remembered successes of one that is not found", praises=0, elsewhere=True, remembered=True),
    *(
        ReportAttack(
            f"1 remembered success of {what} by each of {count}",
            praises=place,
            elsewhere=place == 0,
            answers=1,
            remembered=True,
            callers=count,
        )
        for count in (1, 2, 3, 5)
        for what, place in {"one that is not found": 0, "the tenth": 9}.items()
    ),
)


def false_reports(registry: AttackedRegistry, crowd: Sequence[AttackTarget]) -> dict[str, Any]:
    """Each attack, where nobody else reports and where a crowd does.

    `moved` is the most places that any candidate of any answer moves for somebody else, `moved_answers` the number of
    answers in which one moves more than a place, `first` that of answers which one that was praised takes first, and
    `lost@1` the matches that are lost. `own_moved` is as `moved`, in the answers of the caller who sends the reports.
    """
    rows = {}
    for name, asking in {"nobody else reports": [], "a crowd reports": crowd}.items():
        with tempfile.TemporaryDirectory(prefix="mats-attacks-") as folder:
            honest = Path(folder) / "honest"
            _record(honest, registry, _honest_reports(registry, asking))
            rows[name] = [_try(registry, attack, honest) for attack in REPORT_ATTACKS]
    return rows


def _honest_reports(registry: AttackedRegistry, targets: Sequence[AttackTarget]) -> Iterator[Report]:
    """The reports of a seeded crowd on the answers to these targets."""
    chance = random.Random(SEED)
    for target in targets:
        ranked = registry.rank_ids(target.query.text)
        for caller in chance.sample(range(_CROWD), _REPORTERS):
            event = Event.SUCCEEDED if chance.random() >= _UNLUCKY else Event.FAILED
            claims = _right(target, ranked, event)
            if ranked and ranked[0] not in claims and chance.random() < _MISTAKEN:
                claims[ranked[0]] = Event.FAILED
            yield target, str(caller), claims, True


def _record(folder: Path, registry: AttackedRegistry, reports: Iterable[Report]) -> None:
    """Report in the database of a folder; each report is on an answer of its own."""
    encoder, now = registry.pipeline.encoder, registry.local.clock.now()
    vector_of = cache(lambda text: pack_vector(encoder.encode_query(text)) if encoder else b"")
    folder.mkdir(mode=0o700, exist_ok=True)
    with closing(Database(folder / "mats.db")) as database:
        outcomes = SqliteOutcomes(database)
        for number, (target, caller, claims, remembered) in enumerate(reports):
            receipt = Receipt(
                query_id=f"{caller} {number:06}",
                text="",
                caller=caller,
                audiences=frozenset(),
                at=now,
                shown=tuple(claims),
                encoder=_ENCODER,
                vector=vector_of(target.query.text) if remembered else b"",
            )
            events = tuple(Outcome(id, event) for id, event in claims.items())
            outcomes.record(receipt, Feedback(query_id=receipt.query_id, caller=caller, outcomes=events), now)


@contextmanager
def _learning_from(folder: Path, registry: AttackedRegistry) -> Iterator[None]:
    with closing(Database(folder / "mats.db")) as database:
        others = [policy for policy in registry.pipeline.policies if policy.name not in ("memory", "reliability")]
        memory = Memory(SqliteMemory(database, encoder=_ENCODER))
        reliability = Reliability(SqliteOutcomes(database).tallies, registry.local.clock.now)
        with registry.changed(policies=(memory, reliability, *others)):
            yield


def _try(registry: AttackedRegistry, attack: ReportAttack, honest: Path) -> dict[str, Any]:
    targets, everything = registry.targets, sorted(item.id for item in registry.registrations)
    with _learning_from(honest, registry):
        before, own_before = (_rank_all(registry, targets, caller) for caller in (ASKING, ATTACKER))
    attacked = honest.with_name("attacked")
    after: list[Ranked] = []
    own: list[Ranked] = []
    false = [
        [
            (target, ATTACKER + str(caller or ""), attack.claims(target, ranked, everything), attack.remembered)
            for caller in range(attack.callers)
        ]
        * attack.answers
        for target, ranked in zip(targets, before, strict=True)
    ]
    for group in [range(len(targets))] if attack.at_once else [[place] for place in range(len(targets))]:
        asked = [targets[place] for place in group]
        shutil.copytree(honest, attacked)
        _record(attacked, registry, (report for place in group for report in false[place]))
        with _learning_from(attacked, registry):
            after += _rank_all(registry, asked, ASKING)
            own += _rank_all(registry, asked, ATTACKER)
        shutil.rmtree(attacked)
    moves = [_most_moved(one, other) for one, other in zip(before, after, strict=True)]
    relevant = [target.query.relevant for target in targets]
    taken = [
        ranked[:1] != was[:1] and any(claims.get(ranked[0]) is Event.SUCCEEDED for _, _, claims, _ in reports)
        for was, ranked, reports in zip(before, after, false, strict=True)
    ]
    matches, left = (count_matches(zip(relevant, ranked, strict=True))["match@1"] for ranked in (before, after))
    return {
        "attack": attack.name,
        "answers": len(moves),
        "moved": max(moves, default=0),
        "moved_answers": sum(places > 1 for places in moves),
        "first": sum(taken),
        "lost@1": matches - left,
        "own_moved": max(map(_most_moved, own_before, own), default=0),
    }


def _rank_all(registry: AttackedRegistry, targets: Sequence[AttackTarget], caller: str) -> list[Ranked]:
    return [registry.rank_ids(target.query.text, caller=caller) for target in targets]


def _most_moved(before: Ranked, after: Ranked) -> int:
    """The most places that any candidate of an answer moves; one that leaves it, or enters, from or to its end."""
    places = {id: place for place, id in enumerate(after)}
    moves = [abs(places.get(id, len(after)) - place) for place, id in enumerate(before)]
    moves += [len(before) - place for id, place in places.items() if id not in before]
    return max(moves, default=0)
