"""The list of all capabilities, held in memory: a page of many thousands needs no query."""

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mats.bootstrap.local import SqliteListing, SqliteQueue
from mats.domain.capability.capability import Id, Kind
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import Status
from mats.local.console.selection import ListQuery, ListRow, Sort, count_shows, list_row

_BATCH = 500  # Profiles read per query; between two batches other threads run
_KINDS = frozenset(Kind)
_INTERVAL_S = 1.0
_LONG = 5_000
"""Rows from which on making a snapshot takes tens of milliseconds: requests take the one of the last refresh."""
_MOST_KEPT = 8  # Combinations of filters and order whose rows are kept

LOGGER = logging.getLogger("mats.console")


class Snapshot:
    """The list at one moment, in order of id, with its counts. It does not change."""

    def __init__(self, rows: Sequence[ListRow] = (), findable: int = 0) -> None:
        self.rows, self.findable = rows, findable
        self.shows = count_shows(rows)
        self._ordered = lru_cache(_MOST_KEPT)(lambda query: query.order(query.select(rows)))

    def page(self, query: ListQuery) -> dict[str, Any]:
        """The JSON of a page of the rows that match a query; `following` is the id after which the next one begins.

        After an id that is gone from a list in another order than that of ids, nothing
        follows.
        """
        rows = self._ordered(query.model_copy(update={"after": "", "limit": 1}))
        first = self._start(rows, query)
        last = first + query.limit
        return {
            "total": len(rows),
            "capabilities": [row.to_json() for row in rows[first:last]],
            "following": rows[last - 1].id if last < len(rows) else None,
        }

    def _start(self, rows: Sequence[ListRow], query: ListQuery) -> int:
        if not query.after:
            return 0
        if query.sort is Sort.ID:
            return bisect_right(rows, query.after, key=lambda row: row.id)
        return next((place + 1 for place, row in enumerate(rows) if row.id == query.after), len(rows))


class CapabilityList:
    """The list with the writes of other processes. Safe to share between threads.

    A long list is up to two seconds old, unless this process has written since: `expire`.
    """

    def __init__(self, listing: SqliteListing, queue: SqliteQueue, encoder: str) -> None:
        """`encoder` as of `list_row`."""
        self._listing, self._queue, self._encoder = listing, queue, encoder
        self._lock = threading.Lock()
        self._version: int | None = None
        self._position: int | None = None
        self._profiled: dict[Id, ListRow] = {}
        self._not_indexed: set[Id] = set()
        """Profiles that the index had not acknowledged when they were read: they are read again."""
        self._snapshot = Snapshot()
        self._as_of = self._expired = time.monotonic()
        """Since when the snapshot may lack writes, and before when no snapshot counts any more."""

    def current(self) -> Snapshot:
        is_recent = self._expired < self._as_of and time.monotonic() - self._as_of < 2 * _INTERVAL_S
        return self._snapshot if is_recent and len(self._snapshot.rows) >= _LONG else self.refresh()

    def expire(self) -> None:
        """The next snapshot has every write up to now."""
        self._expired = time.monotonic()

    def refresh(self) -> Snapshot:
        """The snapshot as of now; reads only profiles that changed since the last call."""
        with self._lock:
            began, version = time.monotonic(), self._listing.version()
            if version != self._version:
                self._read_changes()
                self._version = version
            self._as_of = began
            return self._snapshot

    def _read_changes(self) -> None:
        registered = self._listing.kinds()
        position, changed = self._listing.changes(self._position)
        ids = list(self._not_indexed.union(changed))
        for start in range(0, len(ids), _BATCH):
            for profile, indexed in self._listing.profiles(ids[start : start + _BATCH]):
                self._profiled[profile.id] = list_row(profile, indexed=indexed, encoder=self._encoder)
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


class RefreshThread(threading.Thread):
    """Calls `refresh` every second in the background, so that a request reads only the changes of the last one."""

    def __init__(self, refresh: Callable[[], object], after_first: Callable[[], None] = lambda: None) -> None:
        """`after_first` is called once, after the first refresh."""
        super().__init__(name="refresh", daemon=True)
        self._refresh, self._after_first = refresh, after_first
        self._stopped = threading.Event()
        self._refreshed = threading.Event()

    def run(self) -> None:
        """Refresh until stopped; errors do not end it."""
        while True:
            try:
                self._refresh()
            except DependencyFailed:
                pass  # requests report it, and the worker logs it
            except Exception:
                LOGGER.exception("internal error: the console's list could not be refreshed")
            if not self._refreshed.is_set():
                self._after_first()
                self._refreshed.set()
            if self._stopped.wait(_INTERVAL_S):
                return

    def wait(self, seconds: float) -> None:
        self._refreshed.wait(seconds)

    def stop(self) -> None:
        self._stopped.set()
        self.join(timeout=10)
