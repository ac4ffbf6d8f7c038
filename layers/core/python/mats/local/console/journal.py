"""The latest answers as the service's log has them, read from its end; what was read once is not read again."""

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from mats.domain.errors import StorageUnusable
from mats.local.console.exposure import Seen, seen_in

LOG = "mats.log"
_MOST = 1_000
_BLOCK = 1 << 18
_FARTHEST = 32_000_000
"""Bytes of a log that are looked through from its end: a thousand answers, each with a hundred candidates."""


class Journal:
    """The last answers of a log that is turned over as it grows. Safe to share between threads."""

    def __init__(self, folder: Path, most: int = _MOST) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._answers: deque[Seen] = deque(maxlen=most)
        self._most = most
        self._known: tuple[int, int] | None = None
        self._read = 0

    def latest(self) -> Sequence[Seen]:
        """The answers in the order in which they were given.

        Raises:
            StorageUnusable: the log cannot be read.
        """
        with self._lock:
            try:
                self._catch_up()
            except OSError as error:
                raise StorageUnusable(f"{self._folder / LOG} cannot be read: {error.strerror or error}") from error
            return list(self._answers)

    def _catch_up(self) -> None:
        """Read what came since, beginning with the newest of the logs and ending with the one known already."""
        known, read = newest = self._known, self._read
        fresh: list[Seen] = []
        for number, path in enumerate(self._logs()):
            try:
                file = path.open("rb")
            except FileNotFoundError:  # being turned over just now; the next look finds all of it
                return
            with file:
                identity, size = _identity(file), file.seek(0, os.SEEK_END)
                start = read if identity == known and read <= size else 0
                end = _last_line_break(file, start, size)
                fresh = [*_answers_in(file, start, end, self._most - len(fresh)), *fresh]
            if number == 0:
                newest = identity, end
            if identity == known or len(fresh) >= self._most:
                break
        self._known, self._read = newest
        self._answers.extend(fresh)

    def _logs(self) -> Iterator[Path]:
        """Newest first; once that one is there, the turn that made it is over, and the others have their names."""
        yield self._folder / LOG
        older = [path for path in self._folder.glob(f"{LOG}.*") if path.suffix[1:].isdecimal()]
        yield from sorted(older, key=lambda path: int(path.suffix[1:]))


def _identity(file: BinaryIO) -> tuple[int, int]:
    """What tells a file from others, whatever it is called meanwhile."""
    stat = os.fstat(file.fileno())
    return stat.st_dev, stat.st_ino


def _answers_in(file: BinaryIO, start: int, end: int, most: int) -> list[Seen]:
    """At most so many answers, the last between two places, oldest first."""
    found: list[Seen] = []
    for line in _backwards(file, start, end):
        if answer := seen_in(line.decode(errors="replace")):
            found.append(answer)
            if len(found) == most:
                break
    return found[::-1]


def _backwards(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """The lines between two places, last first; of one that is too far away to be whole, the end."""
    rest, at, stop = b"", end, max(start, end - _FARTHEST)
    while at > stop:
        block = min(_BLOCK, at - stop)
        at -= block
        rest, *lines = _read(file, at, block, rest).split(b"\n")
        yield from reversed(lines)
    yield rest


def _last_line_break(file: BinaryIO, start: int, end: int) -> int:
    """Behind the last line break between two places; a line that is still being written is for another look."""
    at = end
    while at > start:
        block = min(_BLOCK, at - start)
        at -= block
        if (found := _read(file, at, block).rfind(b"\n")) >= 0:
            return at + found + 1
    return start


def _read(file: BinaryIO, at: int, size: int, before: bytes = b"") -> bytes:
    file.seek(at)
    return file.read(size) + before
