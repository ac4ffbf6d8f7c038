"""The list of all capabilities, held in memory: a page of many thousands needs no query."""

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mats.domain.capability import Id, Kind
from mats.domain.profile import Status
from mats.local.console.list_row import ListRow, list_row
from mats.local.console.parameters import FILTERS, ListQuery, Show
from mats.ports import Listing, QueueMonitor

_BATCH = 500
"""Profiles read per query; between two batches other threads run."""
_KINDS = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page, the length of the whole list, and the id after which the next page begins; None for the last page."""

    rows: Sequence[ListRow]
    total: int
    following: Id | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The list at one moment, in order of id."""

    rows: Sequence[ListRow] = ()
    findable: int = 0
    kinds: Mapping[Kind, int] = field(init=False, repr=False)
    shows: Mapping[Show, int] = field(init=False, repr=False)
    providers: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kinds = Counter(row.kind for row in self.rows)
        object.__setattr__(self, "kinds", {kind: kinds[kind] for kind in Kind})
        object.__setattr__(self, "shows", {show: sum(map(matches, self.rows)) for show, matches in FILTERS.items()})
        object.__setattr__(self, "providers", Counter(row.provider for row in self.rows))

    def page(self, query: ListQuery) -> ListPage:
        """A page of the rows that match a query."""
        rows = query.select(self.rows)
        first = bisect_right(rows, query.after, key=lambda row: row.id) if query.after else 0
        last = first + query.limit
        return ListPage(rows[first:last], len(rows), rows[last - 1].id if last < len(rows) else None)


class CapabilityList:
    """The current snapshot, which includes the writes of other processes. Safe to share between threads."""

    def __init__(self, listing: Listing, queue: QueueMonitor) -> None:
        self._listing, self._queue = listing, queue
        self._lock = threading.Lock()
        self._version: int | None = None
        self._position: int | None = None
        self._profiled: dict[Id, ListRow] = {}
        self._not_indexed: set[Id] = set()
        """Profiles that the index had not acknowledged when they were read: they are read again."""
        self._snapshot = Snapshot()

    def current(self) -> Snapshot:
        """The current snapshot; reads only profiles that changed since the last call.

        Raises:
            DependencyFailed: the storage cannot be read.
        """
        with self._lock:
            version = self._listing.version()
            if version != self._version:
                self._read_changes()
                self._version = version
            return self._snapshot

    def _read_changes(self) -> None:
        registered = self._listing.kinds()
        position, changed = self._listing.changes(self._position)
        ids = list(self._not_indexed.union(changed))
        for start in range(0, len(ids), _BATCH):
            for profile, indexed in self._listing.profiles(ids[start : start + _BATCH]):
                self._profiled[profile.id] = list_row(profile, indexed=indexed)
                (self._not_indexed.discard if indexed else self._not_indexed.add)(profile.id)
        self._position = position  # only now: after an error the next call reads the same changes again
        rows = {id: self._row(id, kind) for id, kind in registered.items()}
        for id, reason in self._queue.dead_letters():
            if id in rows and not rows[id].error:
                rows[id] = replace(rows[id], error=f"its change is a dead letter: {reason}")
        self._snapshot = Snapshot(list(rows.values()), sum(row.findable for row in self._profiled.values()))

    def _row(self, id: Id, kind: str) -> ListRow:
        row = self._profiled.get(id)
        if row and row.status != Status.DELETED:
            return row
        return ListRow(id=id, kind=Kind(kind) if kind in _KINDS else None)
