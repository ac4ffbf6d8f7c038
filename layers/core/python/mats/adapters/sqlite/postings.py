"""BM25 over every document of the index in memory: exact, and up to date after every change."""

import functools
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mats.adapters.sqlite.arrays import FIRST_ROOM, Copied, Mask, Rows, with_room
from mats.domain.profile.index_fields import TermCounts
from mats.domain.search.bm25 import K1, B, idf
from mats.domain.text.words import index_terms

Integers = npt.NDArray[np.int32]
Frequencies = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]

_PACKED = np.dtype([("term", "<i8"), ("frequency", "<f4")])
_FEW = 4  # Terms from which on it saves time to look up first which of them any document has
_PART = 16_384  # Postings that are scored together
_GLANCE = 256  # Postings that are looked at together for one of a mask
_GROWTH = 8  # A segment is merged with the one before it unless that is at least so many times as large


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


def _order(terms: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The stable order of terms: sorted with their places in the last bits, a third of the time of sorting places."""
    bits = len(terms).bit_length()
    order = np.sort((terms >> bits << bits) | np.arange(len(terms))) & ((1 << bits) - 1)
    ordered = terms[order]
    return order if (ordered[1:] >= ordered[:-1]).all() else np.argsort(terms, kind="stable")


def _add(found: Scores, saturations: Scores, worth: float, rows: Rows, frequencies: Frequencies) -> None:
    """Add what a term is worth in each of these rows, without arrays in between that a cache cannot hold."""
    scores = saturations.take(rows, mode="clip")
    scores += frequencies
    np.divide(frequencies, scores, out=scores)
    scores *= worth
    scores += found.take(rows, mode="clip")
    found[rows] = scores


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
        """Of postings in any order, which those of a term keep."""
        order = _order(terms)
        terms = terms[order]
        starts = np.flatnonzero(np.append(True, terms[1:] != terms[:-1]))[: len(terms)]
        return cls(number, terms[starts], np.append(starts, len(terms)), rows[order], frequencies[order])

    @classmethod
    def merge(cls, number: int, parts: "Sequence[_Segment]") -> "_Segment":
        """Everything of these segments; the postings of a term are copied from one after the other, without sorting."""
        terms = np.unique(np.concatenate([part.terms for part in parts]))
        places = [np.searchsorted(terms, part.terms) for part in parts]
        counts = np.zeros(len(terms), np.int64)
        for part, place in zip(parts, places, strict=True):
            counts[place] += np.diff(part.starts)
        starts = np.append(0, np.cumsum(counts))
        rows, frequencies = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.float32)
        free = starts[:-1].copy()
        for part, place in zip(parts, places, strict=True):
            lengths = np.diff(part.starts)
            target = np.repeat(free[place] - part.starts[:-1], lengths) + np.arange(len(part.rows))
            rows[target], frequencies[target] = part.rows, part.frequencies
            free[place] += lengths
        return cls(number, terms, starts, rows, frequencies)

    def only(self, current: Mask) -> "_Segment":
        """The postings of this mask."""
        if current.all():
            return self
        kept = np.append(0, np.cumsum(current))[self.starts]
        held = np.diff(kept) > 0
        starts = np.append(kept[:-1][held], kept[-1])
        return _Segment(self.number, self.terms[held], starts, self.rows[current], self.frequencies[current])

    def slice_of(self, term: int) -> slice:
        place = int(np.searchsorted(self.terms, term))
        if place == len(self.terms) or self.terms[place] != term:
            return slice(0)
        return slice(int(self.starts[place]), int(self.starts[place + 1]))


class Postings(Copied):
    """Documents by their row number in the database. Not safe to share between threads without a lock."""

    def __init__(self) -> None:
        self._segments: list[_Segment] = []
        self._last = 0
        self._segment_of: Integers = np.zeros(FIRST_ROOM, np.int32)
        """Number of the segment with the present state of a row; 0: of none."""
        self._lengths: Integers = np.zeros(FIRST_ROOM, np.int32)
        self._thinned: set[int] = set()  # Numbers of segments with rows that have been dropped or replaced since
        self._documents = self._length = 0
        self._saturation: Scores | None = None

    def put(self, added: Sequence[Document], *, merge: bool = True) -> None:
        """Add documents, each row once, or replace them; whoever adds many in parts can merge after the last one."""
        if added:
            self._last += 1
            numbers, spans, packed = zip(*added, strict=True)
            rows, lengths = np.array(numbers, np.int32), np.array(spans, np.int32)
            last = int(rows.max())
            self._segment_of, self._lengths = with_room(self._segment_of, last), with_room(self._lengths, last)
            replaced = rows[self._segment_of[rows] > 0]
            self._thinned.update(np.unique(self._segment_of[replaced]).tolist())
            self._saturation = None
            self._documents += len(added) - len(replaced)
            self._length += int(lengths.sum()) - int(self._lengths[replaced].sum())
            self._segment_of[rows], self._lengths[rows] = self._last, lengths
            postings = np.frombuffer(b"".join(packed), _PACKED)
            of_rows = np.repeat(rows, np.array(list(map(len, packed))) // _PACKED.itemsize)
            self._segments.append(_Segment.of(self._last, postings["term"], of_rows, postings["frequency"]))
        if merge:
            self._merge(self._first_alike())

    def compact(self) -> None:
        """Merge everything, as after adding many documents in parts."""
        self._merge(0)

    def drop(self, row: int) -> None:
        if row < len(self._segment_of) and self._segment_of[row]:
            self._thinned.add(int(self._segment_of[row]))
            self._segment_of[row], self._saturation = 0, None
            self._documents -= 1
            self._length -= int(self._lengths[row])

    def scores(self, words: Sequence[str], *, only: Sequence[int] | None = None) -> Scores:
        """BM25 of every row, or of these only; 0: without any of the words."""
        found = np.zeros(len(self._segment_of))
        wanted = None if only is None else np.zeros(len(found), np.bool_)
        if wanted is not None:
            wanted[only] = True
        saturations = self._saturations()
        for term in dict.fromkeys(index_terms(" ".join(words))):
            present = list(self._present(_number(term)))
            worth = (K1 + 1) * idf(sum(len(rows) for rows, _ in present), self._documents)
            for rows, frequencies in present:
                for start in range(0, len(rows), _PART):
                    part = slice(start, start + _PART)
                    places, counts = rows[part].astype(np.intp), frequencies[part]
                    if wanted is not None:
                        held = np.flatnonzero(wanted.take(places))
                        places, counts = places[held], counts[held]
                    _add(found, saturations, worth, places, counts)
        return found

    def rows_with(self, *terms: str) -> Rows:
        """The rows with any of these terms, which are taken as they are, ascending."""
        known = self.terms_of(terms) if len(terms) > _FEW else terms
        found = [rows for term in known for rows, _ in self._present(_number(term)) if len(rows)]
        return np.unique(np.concatenate(found)).astype(np.intp) if found else np.zeros(0, np.intp)

    def is_in(self, mask: Mask, term: str) -> bool:
        """True if a row of this mask has the term, which is taken as it is. Stops at the first."""
        found = (rows for rows, _ in self._present(_number(term)))
        parts = (rows[start : start + _GLANCE] for rows in found for start in range(0, len(rows), _GLANCE))
        return any(mask[part[part < len(mask)]].any() for part in parts)

    def terms_of(self, terms: Sequence[str]) -> list[str]:
        """Those of these terms, which are taken as they are, that a document may have."""
        numbers = np.array(list(map(_number, terms)), np.int64)
        found = np.zeros(len(terms), np.bool_)
        for segment in self._segments:
            places = np.minimum(np.searchsorted(segment.terms, numbers), max(0, len(segment.terms) - 1))
            found |= segment.terms[places] == numbers if len(segment.terms) else False
        return [terms[place] for place in np.flatnonzero(found).tolist()]

    def _present(self, term: int) -> Iterator[tuple[Integers, Frequencies]]:
        """Rows with the term, and its frequency in each."""
        for segment in self._segments:
            found = segment.slice_of(term)
            rows, frequencies = segment.rows[found], segment.frequencies[found]
            if segment.number in self._thinned:
                current = self._segment_of[rows] == segment.number
                rows, frequencies = rows[current], frequencies[current]
            yield rows, frequencies

    def _saturations(self) -> Scores:
        """By row: what is added to a frequency below the line; computed again when a length has changed."""
        if self._saturation is None:
            mean = max(self._length, 1) / max(self._documents, 1)
            self._saturation = K1 * (1 - B) + K1 * B / mean * self._lengths.astype(np.float64)
        return self._saturation

    def _first_alike(self) -> int:
        """The first of the last segments, none of which is much larger than those after it."""
        first, size = len(self._segments), 0
        while first and (size == 0 or len(self._segments[first - 1].rows) < _GROWTH * size):
            first -= 1
            size += len(self._segments[first].rows)
        return first

    def _merge(self, first: int) -> None:
        """Replace the segments from one on by one without what has been dropped or replaced."""
        if len(self._segments) - first < 2:
            return
        self._last += 1
        current = [each.only(self._segment_of[each.rows] == each.number) for each in self._segments[first:]]
        merged = _Segment.merge(self._last, current)
        self._segment_of[merged.rows] = self._last
        self._thinned.difference_update(each.number for each in self._segments[first:])
        self._segments[first:] = [merged]
