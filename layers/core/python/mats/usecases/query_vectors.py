"""A bounded cache of the vectors of queries."""

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from mats.ports import Vector


@dataclass(frozen=True, slots=True)
class QueryVectors:
    """The vectors of the queries used last, by the name of the encoder and the text. Safe to share between threads."""

    most: int = 1_024
    """Some 4 MB with vectors of 1,024 components."""
    found: Counter[bool] = field(default_factory=Counter)
    """How often a vector was asked for and known, or not known."""
    _known: OrderedDict[tuple[str, str], Vector] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, encoder: str, text: str) -> Vector | None:
        with self._lock:
            vector = self._known.get((encoder, text))
            self.found[vector is not None] += 1
            if vector is not None:
                self._known.move_to_end((encoder, text))
            return vector

    def put(self, encoder: str, text: str, vector: Vector) -> None:
        with self._lock:
            self._known[encoder, text] = vector
            self._known.move_to_end((encoder, text))
            while len(self._known) > self.most:
                self._known.popitem(last=False)
