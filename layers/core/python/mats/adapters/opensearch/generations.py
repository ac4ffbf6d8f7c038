"""Generations of the index in OpenSearch, switched without losing a query or a write."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mats.adapters.dynamodb.profiles import DynamoTargets
from mats.adapters.opensearch import mapping
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import ALIAS, OpenSearchIndex
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, NotPermitted, NotPossible
from mats.ports import Stored, Target

_UNDER_WAY_S = 60
"""Wait after a change of the targets, twice the timeout of a write: writes that read the old targets have ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchGenerations:
    """The generations port: `capabilities-1`, `capabilities-2` …, one of them behind the alias."""

    domain: Domain
    targets: DynamoTargets
    encoder: str
    dimension: int | None
    replicas: str = "0-2"
    refresh: str = "1s"
    under_way_s: float = _UNDER_WAY_S

    def writable(self) -> Sequence[Target]:
        """The targets; the first index if none is recorded, which a write creates behind the alias.

        Raises NotPermitted: none of them has vectors of this encoder.
        """
        targets = self.targets() or [self._first]
        if all(target.encoder != self.encoder for target in targets):
            held = ", ".join(sorted({target.encoder or "none" for target in targets}))
            raise NotPermitted(
                f"the index holds vectors of {held}, not of {self.encoder or 'none'}: set MATS_ENCODER and "
                "MATS_BEDROCK as the stacks do, or make an index for another encoder with `mats reindex`"
            )
        return targets

    @property
    def _first(self) -> Target:
        return Target(_index_name(1), self.encoder)

    def record(self) -> Sequence[Target]:
        """Record the first index if none is, with the right to, which enrichment lacks; the targets."""
        return self.targets.change(lambda there: there or [self._first])

    def restore(self, target: Target) -> None:
        """Create a missing target, empty; it becomes the current index if there is none. `mats reconcile` fills it."""
        self._create(target, *([] if self.domain.behind(ALIAS) else [ALIAS]))

    def _create(self, target: Target, *aliases: str) -> None:
        dimension = self.dimension if target.encoder == self.encoder else None
        body = mapping.index_body(
            dimension,
            aliases=[mapping.write_alias(target.name), *aliases],
            replicas=self.replicas,
            refresh=self.refresh,
        )
        self.domain.create(target.name, body)

    def current(self) -> str | None:
        return next(iter(self.domain.behind(ALIAS)), None)

    def begin(self) -> Target:
        """Resume the index that was begun and never promoted, else create one."""
        begun = next((t for t in self.record() if t.filling and t.encoder == self.encoder), None)
        if begun:
            return begun
        number = 1 + max(_number(target.name) for target in self.targets())
        target = Target(_index_name(number), self.encoder, filling=True)
        self.domain.drop(target.name)  # left over by an attempt that was interrupted before it became a target
        self._create(target)
        self.targets.change(lambda there: there if target in there else [*there, target])
        return target

    def fill(self, target: Target, entries: Sequence[Stored]) -> None:
        self._index.fill(target, entries)

    def revisions(self, target: Target, ids: Collection[Id]) -> Mapping[Id, int]:
        return self._index.revisions_in(target.name, ids)

    def promote(self, target: Target) -> None:
        """Switch the alias. The filled index is merged to one segment soon: docs/decisions/0012."""
        self.domain.refresh(target.name)
        self.domain.point(ALIAS, target.name)
        self.domain.merge(target.name)
        done = target._replace(filling=False)
        self.targets.change(lambda there: [done if each.name == done.name else each for each in there])

    def roll_back(self) -> Target:
        current = self.current()
        earlier = [t for t in self.targets() if not t.filling and current and _number(t.name) < _number(current)]
        if not earlier:
            raise NotPossible([Fault("", f"there is no index before {current}: reindex to make a new one")])
        self.domain.point(ALIAS, earlier[-1].name)
        return earlier[-1]

    def retire(self) -> Sequence[str]:
        current = self.current()
        gone = [target.name for target in self.targets() if target.name != current and not target.filling]
        self.targets.change(lambda there: [target for target in there if target.name not in gone])
        if gone:
            time.sleep(self.under_way_s)
        for name in gone:
            self.domain.drop(name)
        return gone

    @property
    def _index(self) -> OpenSearchIndex:
        return OpenSearchIndex(self.domain, self.targets, encoder=self.encoder)


def _index_name(number: int) -> str:
    return f"{ALIAS}-{number}"


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
