"""Search index and its generations."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.ranking.named import NameUse
from mats.domain.ranking.query import Filter
from mats.ports.models import Vector
from mats.ports.stores import Stored


@dataclass(frozen=True, slots=True)
class Hit:
    """One entry of a first-stage list: a BM25 score above 0, or a cosine."""

    id: Id
    score: float


class SearchIndex(Protocol):
    """BM25 over the lexical fields and exact or approximate k-NN over the vectors.

    Every search may raise DependencyFailed: the index did not answer; safe to retry.
    """

    @property
    def name(self) -> str:
        """The name of the index, as in the answer's `versions`."""

    def put(self, entries: Sequence[Stored]) -> None:
        """Index revisions; one that is not findable becomes a tombstone.

        The revision is an external version: an entry older than or equal to the indexed one is a no-op, not an error.
        When this returns, the entries are durable; searches see them at once or within a second.
        """

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """At most `depth` hits by BM25, best first, ties by id; each term counts once, any may match."""

    def exact(self, keys: Collection[str], admitted: Filter, *, most: int) -> Sequence[Id]:
        """At most `most` capabilities with one of these keys (`domain/ranking/exact`), those with high trust first."""

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """At most `depth` hits by cosine, best first, ties by id."""

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Mapping[Id, float]:
        """The BM25 score of each of these; 0.0 for one without any of the terms."""

    def cosine_of(self, vector: Vector, ids: Collection[Id]) -> Mapping[Id, float]:
        """The cosine of each of these that has a vector."""

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        """The indexed profiles of the findable ones of these."""

    def names(self, asked: Collection[str], admitted: Filter) -> Mapping[str, NameUse]:
        """How the capabilities that the filter admits use those of these names that any of them has.

        Names are as those of `domain/ranking/named`.
        """

    def spellings(self, words: Collection[str], admitted: Filter) -> Mapping[str, str]:
        """For each of these words that no entry has, the nearest word of what the filter admits, if one is near.

        Near is as of `domain/text/spelling`, with the same first letter.
        """

    def namespaces(self, admitted: Filter) -> Collection[str]:
        """Namespaces of capabilities that the filter admits. Of very many, some may be missing."""

    def page(self, admitted: Filter, *, after: Id | None, limit: int) -> Sequence[Id]:
        """At most `limit` ids that the filter admits, in order of id, starting after `after`."""

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        """The id of every entry, tombstones included, in order; with `after`, of those that follow this id."""

    def revisions(self, ids: Collection[Id]) -> Mapping[Id, int]:
        """The revision of each of these that has an entry, tombstones included, as last written."""

    def purge(self, ids: Collection[Id]) -> None:
        """Delete the tombstones among these; findable entries stay."""


class CandidateIndex(SearchIndex, Protocol):
    """A search index with a temporary, unsaved entry, for previews."""

    def with_candidate(self, entry: Stored) -> AbstractContextManager[SearchIndex]:
        """The index with this entry in place of the one under its id, for the length of a `with` block.

        Results equal those after registering it. Other readers never see the entry, writers may have to wait, and
        nothing is saved. Inside the block, write to this index, not to the original.

        Raises:
            DependencyFailed: the index cannot be locked; safe to retry.
        """


class Target(NamedTuple):
    """An index that gets every write; its vectors are of one encoder only.

    While `filling`, it is incomplete.
    """

    name: str
    encoder: str
    filling: bool = False
    mapping: int = 1
    """Version of the mapping it was made with, whose fields it takes."""


class Generations(Protocol):
    """The generations of the index: a new one is filled while the old one answers, then promoted.

    Each operation may raise DependencyFailed; repeating it resumes.
    """

    def current(self) -> str | None:
        """The name of the index that answers; None before the first write."""

    def begin(self) -> Target:
        """Start, or resume, an index to be filled; it gets every write from now on."""

    def fill(self, target: Target, entries: Sequence[Stored]) -> None:
        """Write revisions to one index; an older or equal one is a no-op."""

    def revisions(self, target: Target, ids: Collection[Id]) -> Mapping[Id, int]:
        """As `SearchIndex.revisions`, of one index."""

    def promote(self, target: Target) -> None:
        """Switch to an index atomically."""

    def roll_back(self) -> Target:
        """Switch back to the previous index, which still gets every write.

        Raises:
            RequestInvalid: there is no previous index.
        """

    def retire(self) -> Sequence[str]:
        """Delete every index but the current one; returns the names of the deleted ones."""
