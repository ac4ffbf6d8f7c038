"""Every registered capability on one line, kept in memory, so that a list of many thousands is there at once."""

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from local.console.asked import SHOWS, Show, Wanted
from local.console.rows import Row, row_of
from mats.bootstrap.local import Local
from mats.domain.capability import Id, Kind
from mats.domain.errors import DependencyFailed
from mats.domain.profile import Status

_TOGETHER = 500
"""Profiles read at once: between two handfuls others have their turn."""
_LOOK_S = 1.0


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
    ids: Sequence[Id] = field(init=False, repr=False)
    kinds: Mapping[Kind, int] = field(init=False, repr=False)
    shows: Mapping[Show, int] = field(init=False, repr=False)
    providers: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        counted = Counter(row.kind for row in self.rows)
        object.__setattr__(self, "ids", [row.id for row in self.rows])
        object.__setattr__(self, "kinds", {kind: counted[kind] for kind in Kind})
        object.__setattr__(self, "shows", {show: sum(map(admits, self.rows)) for show, admits in SHOWS.items()})
        object.__setattr__(self, "providers", Counter(row.provider for row in self.rows))

    def page(self, wanted: Wanted) -> Page:
        """The rows that are wanted."""
        admitted = [n for n, row in enumerate(self.rows) if wanted.admits(row)]
        first = bisect_right(admitted, bisect_right(self.ids, wanted.after) - 1) if wanted.after else 0
        shown = admitted[first : first + wanted.limit]
        more = first + wanted.limit < len(admitted)
        return Page([self.rows[n] for n in shown], len(admitted), self.ids[shown[-1]] if more else None)


class Roll:
    """The snapshot of now. Safe to share between threads; sees what other processes write."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._lock = threading.Lock()
        self._watch = local.database.watch()
        self._version: int | None = None
        self._revisions: dict[Id, tuple[int, int]] = {}
        self._made: dict[Id, Row] = {}
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
        registered, revisions = list(self._local.registry.ids()), self._local.profiles.revisions()
        for id in self._revisions.keys() - revisions.keys():
            del self._revisions[id], self._made[id]
        changed = [id for id, revision in revisions.items() if self._revisions.get(id) != revision]
        for start in range(0, len(changed), _TOGETHER):
            for profile in self._local.profiles.without_vectors(changed[start : start + _TOGETHER]):
                self._made[profile.id] = row_of(profile)
                self._revisions[profile.id] = (profile.rev, profile.indexed_rev)
        waiting = [id for id in registered if id not in self._made or self._made[id].status == Status.DELETED]
        rows = self._made | self._waiting(waiting)
        for given_up, reason in self._local.events.dead():
            id = Id(given_up)
            if id in rows and not rows[id].error:
                rows[id] = replace(rows[id], error=f"its change was given up: {reason}")
        findable = sum(row.findable for row in self._made.values())
        self._snapshot = Snapshot([rows[id] for id in registered if id in rows], findable)

    def _waiting(self, ids: Sequence[Id]) -> dict[Id, Row]:
        """Rows of what has no profile yet."""
        known = set(Kind)
        kinds = self._local.registry.kinds(ids) if ids else {}
        return {id: Row(id=id, kind=Kind(kind) if kind in known else None) for id, kind in kinds.items()}


class Keeper(threading.Thread):
    """Keeps the roll current in the background, so that nobody has to wait for a large change to be read."""

    def __init__(self, roll: Roll) -> None:
        super().__init__(name="roll", daemon=True)
        self._roll = roll
        self._stopped = threading.Event()

    def run(self) -> None:
        """Look, wait, look again; a storage that fails is the pump's to complain of."""
        while True:
            with suppress(DependencyFailed):
                self._roll.now()
            if self._stopped.wait(_LOOK_S):
                return

    def stop(self) -> None:
        """End after the look at hand."""
        self._stopped.set()
        self.join(timeout=10)
