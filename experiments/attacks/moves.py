"""How far reports move capabilities in answers."""

from collections.abc import Sequence

from experiments.attacks.scene import AttackTarget
from mats.domain.capability.capability import Id


def most_moved(before: Sequence[Id], after: Sequence[Id]) -> int:
    """The most places that any candidate of an answer moves; one that leaves it, or enters, from or to its end."""
    places = {id: place for place, id in enumerate(after)}
    moves = [abs(places.get(id, len(after)) - place) for place, id in enumerate(before)]
    moves += [len(before) - place for id, place in places.items() if id not in before]
    return max(moves, default=0)


def lost_matches(targets: Sequence[AttackTarget], before: Sequence[Sequence[Id]], after: Sequence[Sequence[Id]]) -> int:
    """The matches at the first place that are lost."""
    return _matches(targets, before) - _matches(targets, after)


def _matches(targets: Sequence[AttackTarget], answers: Sequence[Sequence[Id]]) -> int:
    return sum(
        not target.query.relevant.isdisjoint(ranked[:1]) for target, ranked in zip(targets, answers, strict=True)
    )
