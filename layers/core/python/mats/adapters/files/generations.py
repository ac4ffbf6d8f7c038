"""Generations of the index in a bucket: each a series of records of its own, which HEAD names."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from mats.adapters.files.follower import Follower, compact
from mats.adapters.files.index import IndexCopy, as_record
from mats.adapters.files.store import Generation, Head, Store
from mats.adapters.sqlite.entries import read_revisions
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, NotPermitted, NotPossible
from mats.ports import Stored, Target

_NAME = "capabilities-{}"


@dataclass(frozen=True, slots=True)
class FilesGenerations:
    """The port `Generations`: `capabilities-1`, `capabilities-2` …, one of them the current one."""

    store: Store
    encoder: str
    _followers: dict[str, Follower[IndexCopy]] = field(default_factory=dict)  # Of the generation that is being filled

    def writable(self) -> Sequence[Generation]:
        """The generations, which all get every write; if there is none, the first one is made.

        Raises NotPermitted: none of them has vectors of this encoder.
        """
        found = (self.store.head() if self.store.head().current else self.store.change(self._first)).generations
        if all(each.encoder != self.encoder for each in found):
            held = ", ".join(sorted({each.encoder or "none" for each in found}))
            raise NotPermitted(
                f"the index holds vectors of {held}, not of {self.encoder or 'none'}: set MATS_ENCODER and "
                "MATS_BEDROCK as the stacks do, or make an index for another encoder with `mats reindex`"
            )
        return found

    def _first(self, head: Head) -> Head:
        return head if head.current else self._with_next(head, filling=False)

    def _with_next(self, head: Head, *, filling: bool) -> Head:
        """With one more, under a number that no object has, either; of the first one it is that of the current."""
        used = [*self.store.names(), *(each.name for each in head.generations)]
        name = _NAME.format(1 + max((_number(each) for each in used), default=0))
        made = Generation(name=name, encoder=self.encoder, filling=filling)
        return replace(head, current=head.current or name, generations=(*head.generations, made))

    def current(self) -> str | None:
        return self.store.head().current or None

    def begin(self) -> Target:
        """Resume the one that was begun and never promoted, else make one."""

        def with_filling(head: Head) -> Head:
            head = self._first(head)
            return head if self._filling(head) else self._with_next(head, filling=True)

        made = self._filling(self.store.change(with_filling))
        assert made is not None  # noqa: S101 - just made
        return Target(made.name, made.encoder, filling=True)

    def _filling(self, head: Head) -> Generation | None:
        return next((each for each in head.generations if each.filling and each.encoder == self.encoder), None)

    def fill(self, target: Target, entries: Sequence[Stored]) -> None:
        if entries:
            self.store.append(target.name, as_record(entries))

    def revisions(self, target: Target, ids: Collection[Id]) -> Mapping[Id, int]:
        if target.name not in self._followers:
            make = partial(IndexCopy, encoder=target.encoder)
            self._followers[target.name] = Follower(self.store, make, name=target.name)
        return read_revisions(self._followers[target.name](fresh=True).database, ids)

    def promote(self, target: Target) -> None:
        """With a file of it, so that who opens it need not read every record."""
        self.compact(least=1)

        def switch(head: Head) -> Head:
            held = head.get(target.name)
            return replace(head.having(replace(held, filling=False)), current=held.name) if held else head

        self.store.change(switch)
        self.close()

    def roll_back(self) -> Target:
        def earlier(head: Head) -> Head:
            before = [each for each in head.generations if not each.filling and _number(each.name) < _number(was)]
            if not before:
                raise NotPossible([Fault("", f"there is no index before {was}: reindex to make a new one")])
            return replace(head, current=before[-1].name)

        was = self.store.head().current or _NAME.format(0)
        held = self.store.change(earlier).get("")
        assert held is not None  # noqa: S101 - just chosen
        return Target(held.name, held.encoder)

    def retire(self) -> Sequence[str]:
        gone = [each.name for each in self.store.head().generations if not each.filling and each.name != self.current()]
        self.store.change(
            lambda head: replace(head, generations=tuple(each for each in head.generations if each.name not in gone))
        )
        for name in gone:
            self.store.drop(name)
        return gone

    def close(self) -> None:
        """Delete the copies that were made for comparisons."""
        while self._followers:
            self._followers.popitem()[1].close()

    def compact(self, *, least: int) -> int:
        """As `follower.compact`."""
        return compact(self.store, partial(IndexCopy, encoder=self.encoder), least=least)


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
