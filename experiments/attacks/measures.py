"""Measures of an attack: its gain, and the loss of honest capabilities."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mats.domain.capability.capability import Id
from mats.domain.capability.suspicion import suspicions
from mats.evaluation.data.datasets import Dataset, JudgedQuery

if TYPE_CHECKING:
    from experiments.attacks.registry import AttackedRegistry


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The answer to one query under attack.

    Args:
        relevant: The relevant capabilities.
        ranked: All candidates, best first.
        before: The candidates without the attack, best first.
        attackers: Whose places are counted.
        flagged: The candidates with a reason for caution.
    """

    relevant: frozenset[Id]
    ranked: tuple[Id, ...]
    before: tuple[Id, ...]
    attackers: frozenset[Id]
    flagged: frozenset[Id]


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


def honest_matches(registry: "AttackedRegistry", queries: Iterable[JudgedQuery]) -> dict[str, int]:
    return count_matches((query.relevant, registry.rank_ids(query.text)) for query in queries)


def count_flags(registry: "AttackedRegistry", dataset: Dataset) -> dict[str, int]:
    """Registrations that are flagged when they are registered, and those that answers to the set's queries flag.

    The latter are counted once each; `ever` are those of either.
    """
    at_once = {item.id for item in dataset.registrations if suspicions(item)}
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
