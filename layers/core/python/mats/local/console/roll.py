"""Every registered capability on one line, kept in memory, so that a list of many thousands is there at once."""

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mats.bootstrap.local import Local
from mats.domain.capability import Id, Kind
from mats.domain.profile import Status
from mats.local.console.asked import SHOWS, Show, Wanted
from mats.local.console.rows import Row, row_of

_TOGETHER = 500
"""Profiles read at once: between two handfuls others have their turn."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list, how long the whole list is, and behind which id it goes on, if it does."""

    rows: Sequence[Row]
    total: int
    following: Id | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The registry at one moment, in order of id."""

    rows: Sequence[Row] = ()
    findable: int = 0
    kinds: Mapping[Kind, int] = field(init=False, repr=False)
    shows: Mapping[Show, int] = field(init=False, repr=False)
    providers: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        counted = Counter(row.kind for row in self.rows)
        object.__setattr__(self, "kinds", {kind: counted[kind] for kind in Kind})
        object.__setattr__(self, "shows", {show: sum(map(admits, self.rows)) for show, admits in SHOWS.items()})
        object.__setattr__(self, "providers", Counter(row.provider for row in self.rows))

    def page(self, wanted: Wanted) -> Page:
        """The rows that are wanted."""
        rows = wanted.of(self.rows)
        first = bisect_right(rows, wanted.after, key=lambda row: row.id) if wanted.after else 0
        last = first + wanted.limit
        return Page(rows[first:last], len(rows), rows[last - 1].id if last < len(rows) else None)


class Roll:
    """The snapshot of now. Safe to share between threads; sees what other processes write."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._lock = threading.Lock()
        self._watch = local.database.watch()
        self._version: int | None = None
        self._change: int | None = None
        self._made: dict[Id, Row] = {}
        self._unsettled: set[Id] = set()
        """What the index had not acknowledged when it was read."""
        self._snapshot = Snapshot()

    def now(self) -> Snapshot:
        """The registry as it is; what has changed since the last time is read, and next to nothing where nothing has.

        Raises:
            DependencyFailed: the storage cannot be read.
        """
        with self._lock:
            version = self._watch.version()
            if version != self._version:
                self._catch_up()
                self._version = version
            return self._snapshot

    def _catch_up(self) -> None:
        registered = list(self._local.registry.ids())
        change, changed = self._changed()
        for start in range(0, len(changed), _TOGETHER):
            for profile, indexed in self._local.profiles.without_vectors(changed[start : start + _TOGETHER]):
                row = row_of(profile, indexed=indexed)
                self._made[row.id] = row
                (self._unsettled.discard if indexed else self._unsettled.add)(row.id)
        self._change = change  # not before: a look that fails is made up for by the next one
        waiting = [id for id in registered if id not in self._made or self._made[id].status == Status.DELETED]
        rows = self._made | self._waiting(waiting)
        for given_up, reason in self._local.events.dead():
            id = Id(given_up)
            if id in rows and not rows[id].error:
                rows[id] = replace(rows[id], error=f"its change was given up: {reason}")
        findable = sum(row.findable for row in self._made.values())
        self._snapshot = Snapshot([rows[id] for id in registered if id in rows], findable)

    def _changed(self) -> tuple[int, list[Id]]:
        """What has to be read again, which the first time is everything, and up to which change that is."""
        change, changed = self._local.profiles.indexed_since(self._change or 0)
        if self._change is None:
            return change, list(self._local.profiles.ids())
        return change, list(self._unsettled.union(changed))

    def _waiting(self, ids: Sequence[Id]) -> dict[Id, Row]:
        """Rows of what has no profile yet."""
        known = set(Kind)
        kinds = self._local.registry.kinds(ids) if ids else {}
        return {id: Row(id=id, kind=Kind(kind) if kind in known else None) for id, kind in kinds.items()}
