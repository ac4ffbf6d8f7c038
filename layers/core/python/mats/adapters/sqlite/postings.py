"""BM25 over every document of the index in memory: exact, and up to date after every change."""

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mats.adapters.sqlite.arrays import FIRST_ROOM, with_room
from mats.domain.bm25 import K1, B, TermCounts, idf
from mats.domain.text import index_terms

Integers = npt.NDArray[np.int32]
Frequencies = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]

_PACKED = np.dtype([("term", "<i8"), ("frequency", "<f4")])
_GROWTH = 8
"""A segment is merged with the one before it unless that is at least so many times as large."""


class Document(NamedTuple):
    """The stored row of a document's terms: a row number, the number of terms, and their frequencies, packed."""

    row: int
    length: int
    packed: bytes


def pack(row: int, counts: TermCounts) -> Document:
    """The stored form of a document; independent of all others."""
    packed = np.array([(_number(term), count) for term, count in counts.frequencies.items()], _PACKED)
    return Document(row, counts.length, packed.tobytes())


@functools.lru_cache(maxsize=100_000)
def _number(term: str) -> int:
    """A hash of 64 bits: that two of a million terms have the same one has a probability of 3e-8."""
    digest = hashlib.blake2b(term.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@dataclass(frozen=True, slots=True)
class _Segment:
    """Documents that were added together; the postings of `terms[n]` are those from `starts[n]` to `starts[n + 1]`."""

    number: int
    terms: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    rows: Integers
    frequencies: Frequencies

    @classmethod
    def of(cls, number: int, terms: npt.NDArray[np.int64], rows: Integers, frequencies: Frequencies) -> "_Segment":
        """Of postings in any order."""
        order = np.argsort(terms, kind="stable")
        terms = terms[order]
        starts = np.flatnonzero(np.append(True, terms[1:] != terms[:-1]))[: len(terms)]
        return cls(number, terms[starts], np.append(starts, len(terms)), rows[order], frequencies[order])

    def slice_of(self, term: int) -> slice:
        place = int(np.searchsorted(self.terms, term))
        if place == len(self.terms) or self.terms[place] != term:
            return slice(0)
        return slice(int(self.starts[place]), int(self.starts[place + 1]))


class Postings:
    """Documents by their row number in the database. Not safe to share between threads without a lock."""

    def __init__(self) -> None:
        self._segments: list[_Segment] = []
        self._last = 0
        self._segment_of: Integers = np.zeros(FIRST_ROOM, np.int32)
        """Number of the segment with the present state of a row; 0: of none."""
        self._lengths: Integers = np.zeros(FIRST_ROOM, np.int32)
        self._documents = self._length = 0

    def put(self, added: Sequence[Document]) -> None:
        """Add documents, each row once, or replace them."""
        if not added:
            return
        self._last += 1
        for row, length, _ in added:
            self.drop(row)
            self._segment_of, self._lengths = with_room(self._segment_of, row), with_room(self._lengths, row)
            self._segment_of[row], self._lengths[row] = self._last, length
            self._documents += 1
            self._length += length
        postings = np.frombuffer(b"".join(document.packed for document in added), _PACKED)
        counts = [len(document.packed) // _PACKED.itemsize for document in added]
        rows = np.repeat(np.array([document.row for document in added], np.int32), counts)
        self._segments.append(_Segment.of(self._last, postings["term"], rows, postings["frequency"]))
        while len(self._segments) > 1 and len(self._segments[-2].rows) < _GROWTH * len(self._segments[-1].rows):
            self._merge()

    def drop(self, row: int) -> None:
        """Remove a document if it is there."""
        if row < len(self._segment_of) and self._segment_of[row]:
            self._segment_of[row] = 0
            self._documents -= 1
            self._length -= int(self._lengths[row])

    def copy(self) -> "Postings":
        """An independent copy."""
        other = Postings()
        other._segments, other._last = list(self._segments), self._last
        other._segment_of, other._lengths = self._segment_of.copy(), self._lengths.copy()
        other._documents, other._length = self._documents, self._length
        return other

    def scores(self, words: Sequence[str]) -> Scores:
        """BM25 of every row; 0: without any of the words."""
        found = np.zeros(len(self._segment_of))
        mean = max(self._length, 1) / max(self._documents, 1)
        for term in dict.fromkeys(index_terms(" ".join(words))):
            present = list(self._present(_number(term)))
            worth = (K1 + 1) * idf(sum(len(rows) for rows, _ in present), self._documents)
            for rows, frequencies in present:
                saturation = K1 * (1 - B) + K1 * B / mean * self._lengths[rows]
                found[rows] += worth * (frequencies / (frequencies + saturation))
        return found

    def _present(self, term: int) -> Iterator[tuple[Integers, Frequencies]]:
        """Rows with the term, and its frequency in each."""
        for segment in self._segments:
            found = segment.slice_of(term)
            rows, frequencies = segment.rows[found], segment.frequencies[found]
            current = self._segment_of[rows] == segment.number
            yield (rows, frequencies) if current.all() else (rows[current], frequencies[current])

    def _merge(self) -> None:
        """Replace the last two segments by one without what has been dropped or replaced."""
        self._last += 1
        parts = []
        for segment in (self._segments.pop(-2), self._segments.pop()):
            current = self._segment_of[segment.rows] == segment.number
            terms = np.repeat(segment.terms, np.diff(segment.starts))
            parts.append((terms[current], segment.rows[current], segment.frequencies[current]))
        terms, rows, frequencies = map(np.concatenate, zip(*parts, strict=True))
        self._segment_of[rows] = self._last
        self._segments.append(_Segment.of(self._last, terms, rows, frequencies))
