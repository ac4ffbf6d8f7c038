"""The port `Memory` over SQLite: every remembered request in memory, exact cosine."""

import json
import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mats.adapters.sqlite.arrays import with_room
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.receipts import receipt_of
from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, ReportedAnswer
from mats.domain.learning.remembered import Near, Remembered, remember, with_lessons
from mats.domain.search.lookups import Vector

_CHANGED = (
    "SELECT memory.change, memory.query_id, "
    "(SELECT json_group_object(id, json(events)) FROM outcomes WHERE outcomes.query_id = memory.query_id), reports.* "
    "FROM memory LEFT JOIN reports ON reports.query_id = memory.query_id WHERE memory.change > ? ORDER BY memory.change"
)
_FIRST_ROOM = 256
_NONE: Counter[str] = Counter()
_NOBODY = -1  # In place of a caller's code, for a free row


class RequestsInMemory:
    """Remembered requests in memory, of one encoder, by its name. Safe to share between threads.

    `_catch_up` is called before each read, with the lock.
    """

    def __init__(self, encoder: str) -> None:
        self._encoder, self._version = encoder, -1
        self._lock = threading.Lock()
        self._vectors: npt.NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._rows: list[Remembered | None] = []
        self._code_of: npt.NDArray[np.int32] = np.zeros(_FIRST_ROOM, np.int32)
        self._codes: dict[str, int] = {}
        self._last = (-1, b""), np.zeros(0, np.float32)
        self._row_of: dict[str, int] = {}
        self._free: list[int] = []
        self._callers: dict[Id, Counter[str]] = {}
        self._confirmed: dict[Id, Counter[str]] = {}
        self._lessons: set[int] = set()

    def _catch_up(self) -> None:
        """Apply what was written since the last call; `_version` changes with it."""

    def _replace(self, query_id: str, memory: Remembered | None) -> None:
        """Remember a request in place of the one of its query id; None only forgets that one."""
        self._drop(query_id)
        if memory and memory.encoder == self._encoder:
            self._add(memory)

    def nearest(self, vector: Vector, *, depth: int, without: Collection[str] = ()) -> Sequence[Near]:
        wanted = np.asarray(vector, np.float32)
        with self._lock:
            self._catch_up()
            if not self._row_of or wanted.shape != self._vectors.shape[1:]:
                return []
            cosines = self._cosines(wanted)
            if without or self._free:
                cosines = np.where(self._silent(without), -np.inf, cosines)
            if len(cosines) > depth:
                rows = np.flatnonzero(cosines >= np.partition(cosines, -depth)[-depth])
            else:
                rows = np.arange(len(cosines))
            found = [
                Near(cosine, memory)
                for row, cosine in zip(rows.tolist(), cosines[rows].tolist(), strict=True)
                if (memory := self._rows[row]) is not None and cosine > -np.inf
            ]
            lessons = [Near(float(cosines[row]), memory) for row in self._lessons if (memory := self._rows[row])]
        return with_lessons(found, lessons, depth)

    def _cosines(self, wanted: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Of every row; those of the vector asked for last are kept, because a crowd makes two searches of one."""
        asked = (self._version, wanted.tobytes())
        if asked != self._last[0]:
            self._last = asked, np.clip(self._vectors[: len(self._rows)] @ wanted, -1.0, 1.0)
        return self._last[1]

    def _silent(self, callers: Collection[str]) -> npt.NDArray[np.bool_]:
        """Mask of the rows that are free or of these callers."""
        table = np.zeros(len(self._codes) + 1, np.bool_)
        table[[self._codes[caller] for caller in callers if caller in self._codes]] = True
        table[_NOBODY] = True
        return table[self._code_of[: len(self._rows)]]

    def lesson(self, query_id: str) -> Mapping[Id, str]:
        with self._lock:
            self._catch_up()
            memory = self._rows[self._row_of[query_id]] if query_id in self._row_of else None
            return dict.fromkeys(memory.used, memory.at) if memory else {}

    def with_outcomes(self, ids: Collection[Id], caller: str, *, without: Collection[str] = ()) -> Mapping[Id, int]:
        counted: dict[Id, int] = {}
        silent = set(without)
        with self._lock:
            self._catch_up()
            for id in ids:
                by, confirmed = self._callers.get(id, _NONE), self._confirmed.get(id, _NONE)
                sure = by[caller] + confirmed.total() - confirmed[caller]
                if sure or len(by.keys() - silent) > 1:
                    counted[id] = sure
        return counted

    def _add(self, memory: Remembered) -> None:
        vector = np.frombuffer(memory.vector, "<f2").astype(np.float32)
        if not self._vectors.size:
            self._vectors = np.zeros((_FIRST_ROOM, len(vector)), np.float32)
        if len(vector) != self._vectors.shape[1]:
            return
        row = self._free.pop() if self._free else len(self._rows)
        if row == len(self._rows):
            self._rows.append(None)
        if row >= len(self._vectors):
            self._vectors = with_room(self._vectors, row)
            self._code_of = with_room(self._code_of, row)
        self._vectors[row], self._rows[row] = vector, replace(memory, vector=b"")
        self._code_of[row] = self._codes.setdefault(memory.caller, len(self._codes))
        self._row_of[memory.query_id] = row
        if memory.is_lesson:
            self._lessons.add(row)
            return
        for id in memory.used:
            self._callers.setdefault(id, Counter())[memory.caller] += 1
            if memory.confirmed:
                self._confirmed.setdefault(id, Counter())[memory.caller] += 1

    def _drop(self, query_id: str) -> None:
        row = self._row_of.pop(query_id, None)
        memory = None if row is None else self._rows[row]
        if row is None or memory is None:
            return
        self._rows[row], self._code_of[row] = None, _NOBODY
        self._free.append(row)
        if memory.is_lesson:
            self._lessons.remove(row)
            return
        for id in memory.used:
            callers = self._callers[id]
            callers[memory.caller] -= 1
            callers += Counter()  # removes zeros
            if memory.confirmed:
                self._confirmed[id][memory.caller] -= 1


class SqliteMemory(RequestsInMemory):
    """Sees what other processes write. Requests are written with their outcomes (receipts.py)."""

    def __init__(self, database: Database, *, encoder: str) -> None:
        super().__init__(encoder)
        self._database, self._data_version, self._change = database, database.watch().version, 0

    def _catch_up(self) -> None:
        """By any process; cheap if there is nothing."""
        version = self._data_version()
        if version == self._version:
            return
        for change, query_id, events, *report in self._database.rows(_CHANGED, (self._change,)):
            self._replace(query_id, _to_memory(report, events) if events and report[0] else None)
            self._change = change
        self._version = version


def _to_memory(report: Sequence[object], events: str) -> Remembered | None:
    """The memory of a row of `reports` with its events as JSON."""
    *receipt, _missing, confirmed = report
    by_id = {Id(id): frozenset(map(Event, each)) for id, each in json.loads(events).items()}
    return remember(ReportedAnswer(receipt=receipt_of(receipt), events=by_id, confirmed=bool(confirmed)))
