"""Rules on an order: who stands below whom."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def place_below(order: Sequence[K], *rules: Mapping[K, Collection[K]]) -> list[K]:
    """The same order, but with everyone below those that a rule names for it, directly below the last of them.

    Everyone without a rule keeps the place among the others. Where rules contradict each other, the earlier one counts;
    one that goes round in a circle counts as far as it can.

    Args:
        order: Each once.
        rules: By the one that stands below; names that are not in the order do not matter.
    """
    waiting = dict.fromkeys(order)
    placed: list[K] = []
    while waiting:
        free = next(
            key
            for count in range(len(rules), -1, -1)
            for key in waiting
            if all(waiting.keys().isdisjoint(rule.get(key, ())) for rule in rules[:count])
        )
        del waiting[free]
        placed.append(free)
    return placed
