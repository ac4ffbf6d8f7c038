"""What the use cases need of the world, in domain words. No implementation."""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from mats.domain.capability import Id
from mats.domain.profile import Cause, Enrichment, Profile
from mats.domain.query import Filter
from mats.domain.registration import Registration
from mats.domain.usage import Usage

if TYPE_CHECKING:
    Vector: TypeAlias = array[float]
else:
    Vector = array  # can be subscribed from Python 3.12 on only
"""float32 components of Euclidean length 1."""

Item: TypeAlias = Mapping[str, Any]
"""A registry item as it is kept; it may break the contract of a registration."""


class Placed(StrEnum):
    """What became of a registration that was put."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    OTHER_KIND = "other kind"
    """Refused: the id is taken by a capability of another kind, and the kind under an id cannot change."""


class Registry(Protocol):
    """What owners wrote. Every change is announced on the event path in the same step."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        """The items there are, as last written (a consistent read)."""
        ...

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        """Write registrations, each as a whole; what happened to each id. What was written survives a crash.

        Raises:
            StorageUnusable: nothing was written.
        """
        ...

    def remove(self, id: Id) -> bool:
        """Take an item out; whether there was one."""
        ...

    def ids(self) -> Iterator[Id]:
        """Every id, in order."""
        ...


class TrustBook(Protocol):
    """What operators think of capabilities, 0 to 100. Owners cannot write here. Every change is announced."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, int]:
        """The trust there is (a consistent read)."""
        ...

    def put(self, id: Id, trust: int | None) -> None:
        """Set or, with None, take back the trust in a capability, registered or not."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """A profile and its vector, as the profile store keeps them."""

    profile: Profile
    vector: Vector | None = None


class ProfileStore(Protocol):
    """The source of truth of what is indexed, with every earlier revision."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, Stored]:
        """The current revisions there are, tombstones included (a consistent read)."""
        ...

    def save(self, changes: Sequence[Stored]) -> Collection[Id]:
        """Write revisions; returns the ids of those that came too late.

        A revision is written only where the kept one is exactly its predecessor (`rev - 1`; none for rev 1), which
        then joins the earlier versions. What was written survives a crash.
        """
        ...

    def mark_indexed(self, revs: Mapping[Id, int]) -> None:
        """Note that the index acknowledged these revisions; of a profile that has moved on, nothing is noted."""
        ...

    def versions(self, id: Id) -> Sequence[Profile]:
        """The earlier revisions of a profile, oldest first."""
        ...

    def ids(self) -> Iterator[Id]:
        """Every id, tombstones included, in order."""
        ...


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
        is no error. When this returns, the entries are safe and searches see them.
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

    def revisions(self) -> Iterator[tuple[Id, int, bool]]:
        """Every entry's id, revision and whether it is findable (or a tombstone), in order of id."""
        ...

    def purge(self, ids: Collection[Id]) -> None:
        """Forget the tombstones among these; whatever is findable stays."""
        ...


class Encoder(Protocol):
    """Turns texts into vectors whose cosine says how close in meaning they are."""

    @property
    def name(self) -> str:
        """Model and settings: equal names give equal vectors."""
        ...

    @property
    def dimension(self) -> int:
        """Components per vector."""
        ...

    def encode_query(self, text: str) -> Vector:
        """The vector of a query.

        Raises:
            DependencyFailed: the model did not answer.
        """
        ...

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """The vectors of documents, in the order given; None for one that the model did not answer.

        Raises:
            DependencyFailed: it answered none.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a writer made of a registration, and what there is to say about it."""

    enrichment: Enrichment
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Writer(Protocol):
    """The enrichment LLM."""

    @property
    def name(self) -> str:
        """The model's id."""
        ...

    @property
    def prompt(self) -> str:
        """The hash of the prompt."""
        ...

    def describe(self, registration: Registration) -> Written:
        """The five fields of a registration, as the model put them; nothing is held against the registration yet.

        Safe to call from several threads.

        Raises:
            ReplyUnusable: the model answered nonsense; the raw profile stays.
            DependencyFailed: the model did not answer; safe to retry.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """A reranker's judgement: scores in [0, 1] for a prefix of the candidates, and the capability type it inferred.

    `void` says why there are no scores, `clipped` how many were out of range, `cut_off` that the reply ended early.
    """

    scores: tuple[float, ...] = ()
    intent: str | None = None
    usage: Usage = field(default_factory=Usage)
    clipped: int = 0
    cut_off: bool = False
    void: str = ""


class Reranker(Protocol):
    """The discovery LLM: one call per query."""

    @property
    def name(self) -> str:
        """The model's id."""
        ...

    @property
    def prompt(self) -> str:
        """The hash of the prompt."""
        ...

    def judge(self, query: str, candidates: Sequence[Profile]) -> Opinion:
        """How well each candidate serves the query, in the order given, in one call.

        Safe to call from several threads.

        Raises:
            DependencyFailed: the model did not answer.
        """
        ...


class Clock(Protocol):
    """Time, so that tests can hold it."""

    def now(self) -> str:
        """The current time, ISO 8601 in UTC."""
        ...

    def elapsed_ms(self) -> float:
        """Milliseconds since some fixed moment; never goes back."""
        ...


class Ids(Protocol):
    """Fresh identifiers."""

    def __call__(self) -> str:
        """An identifier never given before."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """What an event says: something about this capability changed. It carries the key, never the content."""

    id: Id
    cause: Cause


class Event(NamedTuple):
    """A change as it waits on the local event path, oldest first by `seq`."""

    seq: int
    event_id: str
    source: str
    change: str
    id: str
    time: str
    attempts: int
