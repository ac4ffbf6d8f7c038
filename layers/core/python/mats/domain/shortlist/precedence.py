"""Precedence: rules that move entries of a ranking behind others."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def apply_precedence(order: Sequence[K], *rules: Mapping[K, Collection[K]]) -> list[K]:
    """The order with each key moved directly behind the last of its predecessors, if it is not behind them already.

    The other keys keep their order. Where rules contradict each other, the earlier rule applies; the keys of a cycle
    are placed in their order.

    Args:
        order: Each key once.
        rules: The predecessors of a key; keys that are not in the order are ignored.
    """
    if not any(rules):
        return list(order)
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
