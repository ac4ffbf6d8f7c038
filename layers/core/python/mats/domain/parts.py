"""Parts: the steps of a request that asks for several things. docs/decisions/0049."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TypeVar

from mats.domain.capability import Id
from mats.domain.ranking import Verdict

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
    """The first of every list, then the second of every list, and so on; each item once."""
    absent = object()
    rounds = chain.from_iterable(zip_longest(*lists, fillvalue=absent))
    return list(dict.fromkeys(item for item in rounds if item is not absent))  # type: ignore[misc]


def best_places(lists: Sequence[Sequence[T]]) -> dict[T, tuple[int, ...]]:
    """The numbers of the lists in which each item has its best place, ascending."""
    best: dict[T, int] = {}
    numbers: dict[T, tuple[int, ...]] = {}
    for number, items in enumerate(lists):
        for place, item in enumerate(items):
            if place < best.get(item, place + 1):
                best[item], numbers[item] = place, (number,)
            elif place == best[item]:
                numbers[item] += (number,)
    return numbers
