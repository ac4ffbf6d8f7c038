"""Parts: the steps of a request that asks for several things. docs/decisions/0049."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mats.domain.capability.capability import Id
from mats.domain.ranking.ranking import Verdict

T = TypeVar("T", bound=Hashable)

MOST = 7
"""Parts of a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One step of a request, and the results that serve it, best first.

    `verdict` is None if the step could not be searched.
    """

    text: str
    verdict: Verdict | None
    results: tuple[Id, ...]


def take_in_turn(lists: Iterable[Sequence[T]]) -> list[T]:
    """From every list in turn its next item that is not yet taken, until all are taken."""
    taken: dict[T, None] = {}
    rests = [iter(items) for items in lists]
    while rests:
        unfinished = []
        for rest in rests:
            for item in rest:
                if item not in taken:
                    taken[item] = None
                    unfinished.append(rest)
                    break
        rests = unfinished
    return list(taken)
