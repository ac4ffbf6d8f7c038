"""One index after the other, without a query or a write that goes missing."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from mats.adapters.opensearch import mapping
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import ALIAS, OpenSearchIndex
from mats.domain.capability import Id
from mats.domain.errors import Fault, RequestInvalid
from mats.ports import Stored, Target

_UNDER_WAY_S = 60
"""A write that read the targets before they changed has ended by then: twice as long as one may take."""


class Targets(Protocol):
    """Where the list of targets is kept."""

    def __call__(self) -> Sequence[Target]:
        """The list, oldest first."""
        ...

    def change(self, change: Callable[[Sequence[Target]], Sequence[Target]]) -> Sequence[Target]:
        """Replace the list."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchGenerations:
    """The generations port: `capabilities-1`, `capabilities-2` …, one of them behind the alias."""

    domain: Domain
    targets: Targets
    encoder: str
    dimension: int | None
    replicas: str = "0-2"
    refresh: str = "1s"
    under_way_s: float = _UNDER_WAY_S

    def writable(self) -> Sequence[Target]:
        """The targets; where there is none yet, the first index is made and put behind the alias."""
        return self.targets() or self._first()

    def _first(self) -> Sequence[Target]:
        first = Target(_named(1), self.encoder)
        self._create(first)
        targets = self.targets.change(lambda there: there or [first])
        if not self.domain.behind(ALIAS):
            self.domain.point(ALIAS, targets[0].name)
        return targets

    def _create(self, target: Target) -> None:
        body = mapping.index_body(self.dimension, replicas=self.replicas, refresh=self.refresh)
        self.domain.create(target.name, body)

    def current(self) -> str | None:
        """The index that answers."""
        return next(iter(self.domain.behind(ALIAS)), None)

    def begin(self) -> Target:
        """An index that gets every write from now on; one that was begun before and never put in service, if any."""
        begun = next((t for t in self.writable() if t.filling and t.encoder == self.encoder), None)
        if begun:
            return begun
        number = 1 + max(_number(target.name) for target in self.targets())
        target = Target(_named(number), self.encoder, filling=True)
        self.domain.drop(target.name)  # what an attempt that ended before it was a target has left
        self._create(target)
        self.targets.change(lambda there: [*there, target])
        return target

    def fill(self, target: Target, entries: Sequence[Stored]) -> None:
        """Write revisions to one index."""
        self._index.fill(target, entries)

    def revisions(self, target: Target) -> Iterator[tuple[Id, int, bool]]:
        """What one index holds, in order of id."""
        self.domain.refresh(target.name)
        return self._index.revisions(target.name)

    def promote(self, target: Target) -> None:
        """Let an index answer, in one step."""
        self.domain.point(ALIAS, target.name)
        done = target._replace(filling=False)
        self.targets.change(lambda there: [done if each.name == done.name else each for each in there])

    def roll_back(self) -> Target:
        """Let the index before the current one answer again; it got every write in between.

        Raises:
            RequestInvalid: there is none.
        """
        current = self.current()
        earlier = [t for t in self.targets() if not t.filling and current and _number(t.name) < _number(current)]
        if not earlier:
            raise RequestInvalid([Fault("", f"there is no index before {current} to go back to")])
        self.domain.point(ALIAS, earlier[-1].name)
        return earlier[-1]

    def retire(self) -> Sequence[str]:
        """Delete every index but the one that answers; the names of those."""
        current = self.current()
        gone = [target.name for target in self.targets() if target.name != current]
        self.targets.change(lambda there: [target for target in there if target.name not in gone])
        if gone:
            time.sleep(self.under_way_s)
        for name in gone:
            self.domain.drop(name)
        return gone

    @property
    def _index(self) -> OpenSearchIndex:
        return OpenSearchIndex(self.domain, self.targets, encoder=self.encoder)


def _named(number: int) -> str:
    return f"{ALIAS}-{number}"


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
