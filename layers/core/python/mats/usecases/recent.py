"""Values that are kept: the latest by key, and one that is read again when it is old."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Generic, TypeVar

from mats.domain.errors import DependencyFailed
from mats.domain.search.lookups import Vector
from mats.ports import Clock
from mats.usecases.models import WrappedEncoder

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recent(Generic[T]):
    """Values by the keys used last. Safe to share between threads."""

    most: int = 1_024  # Vectors of 1,024 components take some 4 MB
    found: Counter[bool] = field(default_factory=Counter)  # How often a value was asked for and known, or not known
    _kept: OrderedDict[Hashable, T] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            value = self._kept.get(key)
            self.found[value is not None] += 1
            if value is not None:
                self._kept.move_to_end(key)
            return value

    def put(self, key: Hashable, value: T) -> None:
        with self._lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)


@dataclass(slots=True)
class Refreshed(Generic[T]):
    """A value as last read, at most once in `fresh_ms`, by one thread; others do not wait for it.

    A failed read counts as a read, and the last value stays; before the first, it is `initial`.
    """

    load: Callable[[], T]  # Raises DependencyFailed: the store did not answer
    clock: Clock
    initial: T
    fresh_ms: float = 60_000
    on_failure: Callable[[DependencyFailed], None] = lambda error: None
    _value: Any = None
    _read_ms: float | None = None
    _lock: Any = field(default_factory=threading.Lock)

    def __call__(self) -> T:
        """The value; blocks no longer than one read."""
        now = self.clock.elapsed_ms()
        due = self._read_ms is None or now - self._read_ms >= self.fresh_ms
        if due and self._lock.acquire(blocking=False):
            try:
                self._read_ms = now
                self._value = self.load()
            except DependencyFailed as error:
                self.on_failure(error)
            finally:
                self._lock.release()
        value: T = self.initial if self._value is None else self._value
        return value


@dataclass(frozen=True, slots=True)
class RecentVectors(WrappedEncoder):
    """An encoder that keeps the vectors of the latest queries."""

    recent: Recent[Vector] = field(default_factory=Recent)

    def encode_query(self, text: str) -> Vector:
        if (known := self.recent.get(text)) is not None:
            return known
        vector = self.encoder.encode_query(text)
        self.recent.put(text, vector)
        return vector
