"""The ports `Memory` and `MemoryWriter` over files in a bucket: writes are records, searches run on a copy."""

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from mats.adapters.files.follower import FRESH_S, Follower, compact
from mats.adapters.files.store import Generation, Head, Record, Store
from mats.adapters.sqlite.memory import RequestsInMemory
from mats.domain.capability.capability import Id
from mats.domain.learning.remembered import Near, Remembered
from mats.domain.search.lookups import Vector

_NAME = "memory"
_SETS = ("audiences", "used", "passed_over")


class MemoryCopy(RequestsInMemory):
    """Every request with the version of its last write; its file has a record of each, a line of JSON."""

    def __init__(self, path: Path, *, encoder: str) -> None:
        super().__init__(encoder)
        self._path = path
        self._held: dict[str, tuple[int, Any]] = {}
        if path.exists():
            with path.open(encoding="utf-8") as lines:
                self.apply([json.loads(line) for line in lines])

    def apply(self, records: Sequence[Record]) -> None:
        with self._lock:
            for record in records:
                for query_id, body in record.get("requests", {}).items():
                    if record["version"] >= self._held.get(query_id, (0, None))[0]:
                        self._held[query_id] = record["version"], body
                        self._replace(query_id, _parse(body) if body else None)
            self._version += 1

    def file(self) -> Path:
        with self._path.open("w", encoding="utf-8") as lines:
            for query_id, (version, body) in self._held.items():
                lines.write(json.dumps({"version": version, "requests": {query_id: body}}) + "\n")
        return self._path

    def close(self) -> None:
        """There is nothing open."""


class FilesMemory:
    """Reads a copy that is some seconds old. A version is the number of a record that is written for it."""

    def __init__(self, store: Store, *, encoder: str, online: Store | None = None, fresh_s: float = FRESH_S) -> None:
        """`online` is the store for catching up within an answer; makes no call."""
        self._store = store
        self._make = partial(MemoryCopy, encoder=encoder)
        self._follower = Follower(store, self._make, online=online, fresh_s=fresh_s)

    def nearest(self, vector: Vector, *, depth: int, without: Collection[str] = ()) -> Sequence[Near]:
        return self._follower().nearest(vector, depth=depth, without=without)

    def lesson(self, query_id: str) -> Mapping[Id, str]:
        return self._follower().lesson(query_id)

    def with_outcomes(self, ids: Collection[Id], caller: str, *, without: Collection[str] = ()) -> Mapping[Id, int]:
        return self._follower().with_outcomes(ids, caller, without=without)

    def version(self) -> int:
        """A number that no other call gets, and that grows: without the clocks of several writers."""
        return self._append({})

    def remember(self, memories: Sequence[Remembered], *, version: int) -> None:
        self._append({"version": version, "requests": {each.query_id: _body(each) for each in memories}})

    def forget(self, query_ids: Collection[str], *, version: int) -> None:
        self._append({"version": version, "requests": dict.fromkeys(query_ids)})

    def _append(self, record: Record) -> int:
        if not self._store.head().current:
            self._store.change(lambda head: head if head.current else _FIRST)
        return self._store.append(_NAME, record)

    def compact(self, *, least: int) -> int:
        """As `follower.compact`."""
        return compact(self._store, self._make, least=least)

    def close(self) -> None:
        """Delete the copy."""
        self._follower.close()


_FIRST = Head(current=_NAME, generations=(Generation(name=_NAME),))


def _body(memory: Remembered) -> dict[str, Any]:
    fields = {name: sorted(value) if name in _SETS else value for name, value in asdict(memory).items()}
    return {**fields, "vector": base64.b64encode(memory.vector).decode()}


def _parse(body: Mapping[str, Any]) -> Remembered:
    sets = {name: frozenset(map(Id, body[name])) for name in _SETS}
    return Remembered(**{**body, **sets, "vector": base64.b64decode(body["vector"])})
