"""Measures of an attack: its gain, and the loss of honest capabilities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.attacks.table import TRUSTED
from mats.domain.capability.capability import Id

FULL = 14
"""From this number of attackers among the candidates on, an answer counts as taken over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The answer to one query under attack.

    Args:
        relevant: The relevant capabilities.
        ranked: All candidates, best first.
        before: The candidates without the attack, best first.
        attackers: Whose places are counted.
        flagged: The candidates with a reason for caution.
        trust: The highest trust of a relevant capability; None if none is rated.
    """

    relevant: frozenset[Id]
    ranked: tuple[Id, ...]
    before: tuple[Id, ...]
    attackers: frozenset[Id]
    flagged: frozenset[Id]
    trust: int | None

    def has_attacker_in(self, places: int) -> bool:
        return not self.attackers.isdisjoint(self.ranked[:places])

    @property
    def attacker_places(self) -> int:
        """Candidates that are attackers."""
        return sum(id in self.attackers for id in self.ranked)

    @property
    def attacker_first(self) -> bool:
        return self.has_attacker_in(1)

    @property
    def attacker_above(self) -> bool:
        """Whether an attacker stands above every relevant capability; so it does where none is left."""
        return next((id in self.attackers for id in self.ranked if id in self.attackers | self.relevant), False)


GROUPS: Mapping[str, Callable[[int | None], bool]] = {
    "all": lambda trust: True,
    "trusted": lambda trust: trust is not None and trust >= TRUSTED,
    "unrated": lambda trust: trust is None,
}
"""Queries by the trust of their relevant capability; a low one is in neither of the last two."""


def measure_groups(observations: Sequence[Observation]) -> dict[str, dict[str, float]]:
    """The measures of each group that has queries."""
    groups = {name: [one for one in observations if has(one.trust)] for name, has in GROUPS.items()}
    return {name: measure_answers(group) for name, group in groups.items() if group}


def measure_answers(observations: Sequence[Observation]) -> dict[str, float]:
    """Counts of queries, but for `places`, the mean number of attackers among the candidates.

    `flagged` counts the queries with an attacker that has a reason for caution among the candidates, `flagged_first`
    those where it is first. `above`: an attacker stands above every relevant capability. `lost@1` and `lost@15` are the
    matches before minus those under attack: below 0 if the attack helps the honest. `gone`: no relevant candidate is
    left where there was one.
    """

    def count(has: Callable[[Observation], bool]) -> int:
        return sum(map(has, observations))

    at_1, at_15 = count(lambda o: _match(o.ranked[:1], o)), count(lambda o: _match(o.ranked, o))
    return {
        "queries": len(observations),
        "rank1": count(lambda o: o.attacker_first),
        "top5": count(lambda o: o.has_attacker_in(5)),
        "top10": count(lambda o: o.has_attacker_in(10)),
        "above": count(lambda o: o.attacker_above),
        "places": round(sum(o.attacker_places for o in observations) / len(observations), 2),
        "full": count(lambda o: o.attacker_places >= FULL),
        "flagged": count(lambda o: not o.flagged.isdisjoint(o.attackers)),
        "flagged_first": count(lambda o: o.attacker_first and o.ranked[0] in o.flagged),
        "match@1": at_1,
        "match@15": at_15,
        "lost@1": count(lambda o: _match(o.before[:1], o)) - at_1,
        "lost@15": count(lambda o: _match(o.before, o)) - at_15,
        "gone": count(lambda o: _match(o.before, o) and not _match(o.ranked, o)),
    }


def _match(ids: Sequence[Id], observation: Observation) -> bool:
    return not observation.relevant.isdisjoint(ids)
