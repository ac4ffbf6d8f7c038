"""Numbered records in a bucket, and files that are made of them. docs/decisions/0091.

Under a prefix: `HEAD`, the only object that is ever replaced, and for each generation NAME `NAME/log/000000000001` ...
and `NAME/files/000000000064-1f2e3d4c`, the state after that record. A record is created once, under the number that
follows the last one, so there is no gap, no second one, and none that arrives late under an earlier number.
"""

import json
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

from mats.adapters.files.bucket import CONNECTIONS, Bucket
from mats.domain.errors import DependencyFailed, StorageUnusable

Record: TypeAlias = dict[str, Any]
KEPT = 1_000  # Records that stay behind a file: a copy that lags by no more need not read the file again
_ATTEMPTS = 100  # Of a conditional write; in each round one of the writers succeeds
LOGGER = logging.getLogger("mats")


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One series of records, and the file of the state after record `end`; records up to `floor` may be gone."""

    name: str
    encoder: str = ""
    filling: bool = False
    file: str = ""
    end: int = 0
    floor: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The generations, oldest first, and the name of the one that answers."""

    current: str = ""
    generations: tuple[Generation, ...] = ()

    def get(self, name: str) -> Generation | None:
        """The generation of this name; empty: the current one."""
        return next((each for each in self.generations if each.name == (name or self.current)), None)

    def having(self, changed: Generation) -> "Head":
        """The same with this generation in place of the one of its name."""
        kept = tuple(changed if each.name == changed.name else each for each in self.generations)
        return replace(self, generations=kept)


class Store:
    """The generations under one prefix of a bucket. Every call raises DependencyFailed if the bucket did not answer."""

    def __init__(self, bucket: Bucket, prefix: str) -> None:
        self.bucket, self.prefix, self._head_key = bucket, prefix, f"{prefix}/HEAD"
        self._known: dict[str, int] = {}  # A record of each generation after which the last one is looked for

    def head(self) -> Head:
        """The current state; that of the newest version if the object was deleted."""
        return self._load()[0]

    def _load(self) -> tuple[Head, str]:
        """The state, and the tag of the object that a change replaces; empty if there is none."""
        found = self.bucket.load(self._head_key)
        last = found or self.bucket.load_deleted(self._head_key)
        if last is None:
            return Head(), ""
        try:
            held = json.loads(last.body)
            generations = tuple(Generation(**each) for each in held["generations"])
            return Head(current=held["current"], generations=generations), found.tag if found else ""
        except (ValueError, KeyError, TypeError) as error:
            raise StorageUnusable(
                f"{self._head_key} of {self.bucket.name} cannot be read ({error}): delete its newest version"
            ) from error

    def change(self, change: Callable[[Head], Head]) -> Head:
        """Replace the state by `change` of it, which is called again if another writer comes first."""
        for _ in range(_ATTEMPTS):
            before, tag = self._load()
            after = change(before)
            if after == before and tag:
                return after
            if self.bucket.write(self._head_key, json.dumps(asdict(after)).encode(), over=tag):
                return after
        raise DependencyFailed(f"{self._head_key} of {self.bucket.name} changes too often; try again")

    def append(self, name: str, record: Record) -> int:
        """Write a record behind the last one; returns its number. When this returns, every reader will get to it.

        A number is only good if it is above the floor after it was written: below, the record that had it may be gone.
        """
        body = json.dumps(record).encode()
        for _ in range(_ATTEMPTS):
            number = self.end(name, self._known.get(name, 0)) + 1
            written = self.bucket.write(self._record_key(name, number), body)
            generation = self.head().get(name)
            if generation is None:
                return number  # retired meanwhile: nobody reads it
            self._known[name] = max(number if written else 0, generation.floor)
            if written and number > generation.floor:
                return number
        raise DependencyFailed(f"{self.prefix}/{name} of {self.bucket.name} has too many writers; try again")

    def end(self, name: str, known: int) -> int:
        """The number of the last record, which is at least `known`."""
        keys = self.bucket.keys(f"{self.prefix}/{name}/log/", after=self._record_key(name, known))
        return max((int(key.rpartition("/")[2]) for key in keys), default=known)

    def after(self, name: str, position: int) -> Iterator[Sequence[Record]]:
        """The records that follow a position above the floor, in order, in parts."""
        asked = 1
        while True:
            keys = [self._record_key(name, position + number) for number in range(1, asked + 1)]
            blobs = [self.bucket.load(keys[0])] if asked == 1 else _readers().map(self.bucket.load, keys)
            found = [_parse_record(blob.body) for blob in takewhile(bool, blobs) if blob]
            if found:
                yield found
            if len(found) < asked:
                return
            position, asked = position + asked, min(2 * asked, CONNECTIONS)

    def publish(self, name: str, end: int, path: Path) -> bool:
        """Put a file of the state after record `end` in place of an older one, and delete what is no longer needed.

        False if there is one that is as new.
        """
        key = f"{self.prefix}/{name}/files/{end:012}-{secrets.token_hex(4)}"
        with path.open("rb") as file:
            self.bucket.write(key, file)

        def newer(head: Head) -> Head:
            held = head.get(name)
            if held is None or held.end >= end:
                return head
            return head.having(replace(held, file=key, end=end, floor=max(held.floor, end - KEPT)))

        held = self.change(newer).get(name)
        if held is None or held.file != key:
            self.bucket.delete([key])
            return False
        self._trim(held)
        return True

    def _trim(self, held: Generation) -> None:
        """Delete records up to the floor, and files that are older than the one that is named."""
        below = self._record_key(held.name, held.floor)
        gone = list(takewhile(lambda key: key <= below, self.bucket.keys(f"{self.prefix}/{held.name}/log/")))
        files = self.bucket.keys(f"{self.prefix}/{held.name}/files/")
        gone += [key for key in files if key != held.file and int(key.rpartition("/")[2][:12]) < held.end]
        self.bucket.delete(gone)

    def drop(self, name: str) -> None:
        """Delete everything of a generation that HEAD no longer names."""
        self.bucket.delete(list(self.bucket.keys(f"{self.prefix}/{name}/")))

    def names(self) -> Sequence[str]:
        """The names under which there is anything, also without HEAD."""
        start = len(self.prefix) + 1
        found = {key[start:].partition("/")[0] for key in self.bucket.keys(f"{self.prefix}/")}
        return sorted(found - {"HEAD"})

    def _record_key(self, name: str, number: int) -> str:
        return f"{self.prefix}/{name}/log/{number:012}"


def _parse_record(body: bytes) -> Record:
    """The record; an empty one where it cannot be read: its entries are missing until the nightly comparison."""
    try:
        record = json.loads(body)
        return {} if not isinstance(record, dict) else record
    except ValueError as error:
        LOGGER.error("a record of the index is left out, because it cannot be read: %s", error)
        return {}


@cache
def _readers() -> ThreadPoolExecutor:
    """Threads for reads at a time."""
    return ThreadPoolExecutor(CONNECTIONS, "files")
