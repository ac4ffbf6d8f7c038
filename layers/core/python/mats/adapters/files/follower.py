"""A copy of a generation on this machine that follows its records."""

import logging
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from mats.adapters.connections import Moment
from mats.adapters.files.store import Generation, Record, Store
from mats.domain.errors import DependencyFailed

FRESH_S = 5.0  # Time for which a copy is not compared with the bucket again
LOGGER = logging.getLogger("mats")


class Copy(Protocol):
    """The state that records lead to."""

    def apply(self, records: Sequence[Record]) -> None:
        """Bring it up to these; repeating the last ones changes nothing."""

    def file(self) -> Path:
        """A file of it, for the bucket."""

    def close(self) -> None:
        """Close its files."""


C = TypeVar("C", bound=Copy)


class Follower(Generic[C]):
    """Opens a copy from the file that HEAD names, and applies the records after it. Safe to share between threads.

    `make` gets the path of the file, where nothing is if the generation has none yet.
    """

    def __init__(
        self,
        store: Store,
        make: Callable[[Path], C],
        *,
        name: str = "",
        online: Store | None = None,
        fresh_s: float = FRESH_S,
    ) -> None:
        """Follow one generation, by default the current one; `online` is the store for catching up within an answer."""
        self._store, self._make, self._name, self._fresh_s = store, make, name, fresh_s
        self._online = online or store
        self._lock = threading.Lock()
        self._looked: Moment | None = None
        self._of, self.position = "", 0
        self._copy: C | None = None
        self._folders: list[tuple[Path, C]] = []

    def __call__(self, *, fresh: bool = False) -> C:
        """The copy as of at most so many seconds ago, or now if `fresh`; where the bucket does not answer, as it was.

        Raises DependencyFailed: the bucket did not answer, and there is no copy yet, or it had to be fresh.
        """
        with self._lock:
            now = Moment.now()
            if fresh or self._copy is None or self._looked is None or self._looked.seconds_to(now) >= self._fresh_s:
                patient = fresh or self._copy is None
                try:
                    self._catch_up(self._store if patient else self._online)
                except DependencyFailed as error:
                    if patient:
                        raise
                    LOGGER.warning("the index stays as it was, because its bucket did not answer: %s", error)
                self._looked = now
            assert self._copy is not None  # noqa: S101 - opened above
            return self._copy

    def _catch_up(self, store: Store) -> None:
        held = store.head().get(self._name) or Generation(name="")
        if self._copy is None or held.name != self._of or self.position < held.floor:
            self._open(held)
        assert self._copy is not None  # noqa: S101 - opened above
        for records in store.after(held.name, self.position) if held.name else ():
            self._copy.apply(records)
            self.position += len(records)

    def _open(self, held: Generation) -> None:
        folder = Path(tempfile.mkdtemp(prefix="mats-"))
        path = folder / "mats.db"
        try:
            copy = self._load(held.file, path)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        while len(self._folders) > 1:  # the last one may be in use by a search that has begun
            self._discard()
        self._folders.append((folder, copy))
        self._copy, self._of, self.position = copy, held.name, held.end

    def _load(self, file: str, path: Path) -> C:
        try:
            if file and not (self._store.bucket.download(file, path) and path.stat().st_size):
                raise FileNotFoundError("it is gone or empty")
            return self._make(path)
        except (FileNotFoundError, ValueError, sqlite3.DatabaseError) as error:
            raise DependencyFailed(
                f"{file} of the bucket {self._store.bucket.name} cannot be read ({error}); try again, and if "
                "it stays so, delete every version of HEAD and run `make maintain TASK=reconcile`"
            ) from error

    def _discard(self) -> None:
        folder, copy = self._folders.pop(0)
        copy.close()
        shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Close every copy and delete its files."""
        while self._folders:
            self._discard()
        self._copy = None


def compact(store: Store, make: Callable[[Path], Copy], *, least: int) -> int:
    """Make a new file of each generation that has at least so many records after its file; returns how many."""
    made = 0
    for held in store.head().generations:
        if store.end(held.name, held.end) - held.end < least:
            continue
        follower = Follower(store, make, name=held.name)
        try:
            copy = follower()
            made += store.publish(held.name, follower.position, copy.file())
        finally:
            follower.close()
    return made
