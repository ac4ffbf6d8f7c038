"""What searches, and how one index follows another."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mats.domain.capability import Id
from mats.domain.profile import Profile
from mats.domain.query import Filter
from mats.ports.stores import Stored
from mats.ports.vectors import Vector


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
        """Which index answers, as the answer's `versions` has it."""
        ...

    def put(self, entries: Sequence[Stored]) -> None:
        """Make revisions findable; one that is not findable becomes a tombstone.

        The revision is an external version: an entry older than or equal to the one there changes nothing, and that
        is no error. When this returns, the entries are safe; searches see them at once or within a second.
        """
        ...

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """At most `depth` hits by BM25, best first, equal ones by id; each term counts once, any may match."""
        ...

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Sequence[Hit]:
        """At most `depth` hits by cosine, best first, equal ones by id."""
        ...

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Mapping[Id, float]:
        """The BM25 score of each of these; 0.0 for one that holds none of the terms."""
        ...

    def cosine_of(self, vector: Vector, ids: Collection[Id]) -> Mapping[Id, float]:
        """The cosine of each of these that has a vector."""
        ...

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        """The indexed profiles of those that are findable."""
        ...

    def page(self, admitted: Filter, *, after: Id | None, limit: int) -> Sequence[Id]:
        """At most `limit` ids that the filter admits, in order of id, beginning behind `after`."""
        ...

    def revisions(self) -> Iterator[tuple[Id, int, bool]]:
        """Every entry's id, revision and whether it is findable (or a tombstone), in order of id."""
        ...

    def purge(self, ids: Collection[Id]) -> None:
        """Forget the tombstones among these; whatever is findable stays."""
        ...


class CandidateIndex(SearchIndex, Protocol):
    """A search index that can be searched as if one more profile were registered."""

    def with_candidate(self, entry: Stored) -> AbstractContextManager[SearchIndex]:
        """The index with this entry in it, in place of the one under its id, for the length of a `with` block.

        Results are those that registering it would give. Other readers never see it, writers may have to wait, and
        nothing of it is kept. Write into this index, not into the one given.

        Raises:
            DependencyFailed: the index cannot be locked; safe to retry.
        """
        ...


class Target(NamedTuple):
    """An index that every write goes to; it holds vectors of one encoder only.

    While it is `filling`, it does not hold everything yet.
    """

    name: str
    encoder: str
    filling: bool = False


class Generations(Protocol):
    """One index after the other: a new one is filled while the old one answers, then they change places.

    Each may raise DependencyFailed; whatever was done stays, and doing it again goes on from there.
    """

    def current(self) -> str | None:
        """The index that answers; None if nothing was ever indexed."""
        ...

    def begin(self) -> Target:
        """An index that gets every write from now on, to be filled; one begun before is gone on with."""
        ...

    def fill(self, target: Target, entries: Sequence[Stored]) -> None:
        """Write revisions to one index; an older or equal one changes nothing."""
        ...

    def revisions(self, target: Target) -> Iterator[tuple[Id, int, bool]]:
        """What one index holds, as `SearchIndex.revisions`."""
        ...

    def promote(self, target: Target) -> None:
        """Let an index answer, in one step."""
        ...

    def roll_back(self) -> Target:
        """Let the index before the current one answer again; it got every write in between.

        Raises:
            RequestInvalid: there is none.
        """
        ...

    def retire(self) -> Sequence[str]:
        """Delete every index but the one that answers; the names of those."""
        ...
