"""Caches of the values used last."""

from collections import Counter, OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

from mats.domain.search.lookups import Vector
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
