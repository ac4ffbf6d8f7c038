"""Interfaces of the use cases to stores, index, models, clock and observers, in domain terms. No implementation."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import CapabilityError
from mats.domain.learning.outcome import Feedback, Outcome, Receipt, ReportedAnswer
from mats.domain.learning.remembered import Near, Remembered
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.origin import Placed
from mats.domain.profile.profile import Cause, ChangeResult, Profile, Refusal
from mats.domain.profile.sync import SourceRun, TrackedEntry, TrackedSource
from mats.domain.prompts.prompt import Written
from mats.domain.prompts.rerank_reply import RerankResult
from mats.domain.prompts.usage import Usage
from mats.domain.search.lookups import Lookups, Vector
from mats.domain.search.query import ANYWHERE, Filter, Scope
from mats.domain.search.shortlist import Shortlist

# --- models, and an operator's choice among them ---


Labels: TypeAlias = Mapping[str, str]
"""Names of a call for logs, such as `query_id`: a name is letters and underscores, a value is any text."""
NO_LABELS: Labels = MappingProxyType({})


class Encoder(Protocol):
    """Turns texts into vectors; the product of a query's and a document's measures semantic similarity.

    Vectors of queries have length 1.
    """

    @property
    def name(self) -> str: ...  # Model and settings: equal names give equal vectors
    @property
    def dimension(self) -> int: ...  # Components per vector

    def encode_query(self, text: str) -> Vector:
        """The vector of a query. Raises DependencyFailed: the model did not answer."""

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """The vectors of documents, in the order given; None for each failed one.

        Raises DependencyFailed: all failed.
        """


@runtime_checkable
class LanguageBound(Protocol):
    """An encoder that knows what it cannot read."""

    def reads(self, text: str) -> bool:
        """True if its vocabulary covers the language of a text."""

    def has_words(self, text: str) -> bool:
        """False if a text falls apart into pieces of its vocabulary, as random letters do."""


class Writer(Protocol):
    """The enrichment LLM."""

    @property
    def name(self) -> str: ...  # The model's id
    @property
    def prompt(self) -> str: ...  # The hash of the prompt

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        """The five fields of a registration, as the model wrote them; not yet grounded.

        Safe to call from several threads. Labels are for the provider's log of this call; the model does not read them.
        Raises ReplyUnusable: the reply is malformed; the raw profile stays. DependencyFailed: the model did not answer;
        safe to retry.
        """


class Reranker(Protocol):
    """The discovery LLM: one call per query."""

    @property
    def name(self) -> str: ...  # The model's id
    @property
    def prompt(self) -> str: ...  # The hash of the prompt

    def rerank(self, query: str, candidates: Sequence[Profile], labels: Labels = NO_LABELS) -> RerankResult:
        """Score each candidate (at least one) for the query, in the order given, in one call.

        Safe to call from several threads. Labels as in `Writer.describe`. Raises DependencyFailed: the model did not
        answer.
        """


# --- registrations, trust, profiles, sources, and the changes of all ---


Item: TypeAlias = Mapping[str, Any]  # A registry item as stored; it may be invalid


class ImportTarget(Protocol):
    """Where registrations of sources go."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        """The items that exist, by a consistent read."""

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        """Replace whole items; returns the effect on each id. An acknowledged write survives a crash.

        Raises StorageUnusable: nothing was written.
        """


class Registry(ImportTarget, Protocol):
    """The registrations. Every write puts its change into the event queue in the same transaction."""

    def remove(self, id: Id) -> bool:
        """Remove an item; returns whether it existed."""

    def ids(self, *, after: Id | None = None, namespace: str = "") -> Iterator[Id]:
        """Every id once, in an order that lasts; ids written during the iteration may be missed.

        With `after`, only those that follow this id, which may have been removed; with `namespace`, only those in it or
        below it.
        """


Precondition: TypeAlias = Callable[[str | None], bool]
"""True if a write may replace the item with this ETag; None: there is no item."""


class TrustBook(Protocol):
    """Assignments of operators: rows for a capability, or for a namespace with all below it (`pattern_id`).

    A write leads to a change of each registered capability that it concerns.
    """

    def get(self, ids: Collection[Id]) -> Mapping[Id, Assigned]:
        """The resolved assignment of each of these capabilities (`resolve`), by a consistent read."""

    def rows(self, keys: Collection[Id]) -> Mapping[Id, Assigned]:
        """The rows that exist under these keys, without invalid values, by a consistent read."""

    def put(self, key: Id, assigned: Assigned) -> None:
        """Replace the row of a capability or namespace, registered or not; NOTHING_ASSIGNED withdraws it."""


GUARD_DAYS = 8
"""A day more than tombstones stay in the index, so that nothing there outlives the profile's revision number."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A profile and its vector, as stored."""

    profile: Profile
    vector: Vector | None = None


class ProfileStore(Protocol):
    """The profiles with every earlier revision: the source of truth of the index."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, Stored]:
        """The current revisions, tombstones included, by a consistent read."""

    def save(self, changes: Sequence[Stored]) -> Collection[Id]:
        """Write revisions; returns the ids of those that were superseded.

        A revision is written only if the stored one is its predecessor (`rev - 1`; none for rev 1), which then
        becomes an earlier version. An acknowledged write survives a crash.
        """

    def mark_indexed(self, revs: Mapping[Id, int]) -> None:
        """Set `indexed_rev` of these profiles; a no-op where the current revision is another one."""

    def versions(self, id: Id) -> Sequence[Profile]:
        """The earlier revisions of a profile, oldest first."""

    def removals(self, namespace: str) -> Sequence[Profile]:
        """The latest content of each entry of a namespace that was removed, as far as its versions are kept."""

    def erase(self, id: Id) -> int:
        """Delete the earlier revisions, and let the current one, a tombstone, expire; the number of revisions deleted.

        The tombstone stays for GUARD_DAYS: until then a run that still holds the content cannot write it. Raises
        DependencyFailed: the current revision is no tombstone; or the store did not answer, and repeating resumes.
        """

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        """As `Registry.ids`; tombstones are included."""


class SourceState(NamedTuple):
    """A source, the outcome of its latest sync, and the number of its entries."""

    source: TrackedSource
    run: SourceRun
    entries: int
    gone: int  # Of the entries: those that the source no longer lists


class SourceBook(Protocol):
    """The sources, and for one target registry what came from each. An acknowledged write survives a crash."""

    def add(self, source: TrackedSource) -> None:
        """Add a source, or replace the definition of the one with this name; what came from it stays known."""

    def remove(self, name: str) -> bool:
        """Forget a source and what came from it, for every target; returns whether there was one."""

    def all(self) -> Sequence[SourceState]:
        """Every source, in order of name."""

    def entries(self, name: str) -> Mapping[Id, TrackedEntry]:
        """The entries that came from a source."""

    def others(self, name: str, ids: Collection[Id]) -> Mapping[Id, Mapping[str, TrackedEntry]]:
        """The entries of other sources under these ids, by the name of the source; ids without any are left out."""

    def record(self, name: str, entries: Mapping[Id, TrackedEntry | None]) -> None:
        """Replace entries of a source; None forgets one."""

    def finish(self, name: str, run: SourceRun) -> None:
        """Replace the outcome of a source's latest sync."""


class SyncTarget(ImportTarget, Protocol):
    """A registry that a sync writes to."""

    def remove_same(self, id: Id, item: Item) -> bool:
        """Remove an item if it is still this one; returns whether there was one.

        Raises PreconditionFailed: there is another one.
        """


@dataclass(frozen=True, slots=True)
class Change:
    """Something about a capability changed. Carries the id, never the content."""

    id: Id
    cause: Cause


@dataclass(frozen=True, slots=True)
class NamespaceChange:
    """The row of a namespace changed, and with it every capability in it or below it."""

    namespace: str
    cause: Cause
    after: Id | None = None  # If given, only those after it, in the order of `Registry.ids`


class QueuedChange(NamedTuple):
    """A change in the local event queue; `source` is the table (Registry, Trust), `change` INSERT, MODIFY or REMOVE."""

    seq: int  # Order of arrival
    event_id: str
    source: str
    change: str
    id: str
    time: str
    attempts: int


# --- the search index and its generations ---


class SearchIndex(Lookups, Protocol):
    """The index that answers: it is searched by its `Lookups`.

    Every operation may raise DependencyFailed: the index did not answer; safe to retry.
    """

    @property
    def name(self) -> str: ...  # As in the answer's `versions`

    def put(self, entries: Sequence[Stored]) -> None:
        """Index revisions; one that is not findable becomes a tombstone.

        The revision is an external version: an entry older than or equal to the indexed one is a no-op, not an error.
        When this returns, the entries are durable; searches see them at once or within a second.
        """

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
        nothing is saved. Inside the block, write to this index, not to the original. Raises DependencyFailed: the index
        cannot be locked; safe to retry.
        """


class Target(NamedTuple):
    """An index that gets every write; its vectors are of one encoder only. While `filling`, it is incomplete."""

    name: str
    encoder: str
    filling: bool = False


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

        Raises RequestInvalid: there is no previous index.
        """

    def retire(self) -> Sequence[str]:
        """Delete every index but the current one; returns the names of the deleted ones."""


# --- receipts, outcomes and memory; each operation may raise DependencyFailed: safe to repeat ---


class Receipts(Protocol):
    """The receipts of the latest answers; each expires after some days."""

    def put(self, receipt: Receipt) -> None:
        """Store a receipt, or replace the one of its query id."""

    def get(self, query_id: str) -> Receipt | None:
        """The receipt of an answer; None if it is unknown or has expired."""


class Outcomes(Protocol):
    """Reported outcomes."""

    def record(self, receipt: Receipt, feedback: Feedback) -> Sequence[Outcome]:
        """Store what is new in feedback on the receipt's answer; returns its new outcomes.

        When this returns, everything is durable. Each event of a result is stored once, however often and in whatever
        order it is reported. A receipt is kept with the first feedback.
        """

    def of(self, query_id: str) -> ReportedAnswer | None:
        """The outcomes reported on an answer, by a consistent read."""

    def confirm(self, query_id: str, *, confirmed: bool = True) -> bool:
        """Set an operator's confirmation; returns whether there is feedback on this answer."""

    def query_ids(self, *, after: str = "") -> Iterator[str]:
        """The id of every answer with feedback once, in an order that lasts; with `after`, those that follow it."""

    def forget(self, id: Id, *, lessons: bool = False) -> int:
        """Delete the outcomes of a capability; their number.

        What operators taught stays, unless it is named: a capability that is registered again has it.
        """

    def withdraw(self, query_id: str) -> bool:
        """Delete what is reported on an answer; returns whether there was anything."""

    def withdraw_of(self, caller: str) -> int:
        """Delete what a caller reported, but what an operator confirmed; the number of its answers. Safe to repeat."""


class Memory(Protocol):
    """Remembered requests, by the similarity of their vectors; those of another encoder are not found."""

    def nearest(self, vector: Vector, *, depth: int, without: Collection[str] = ()) -> Sequence[Near]:
        """At most `depth` remembered requests by cosine, best first, ties by query id; none of these callers.

        Beside them the `LESSONS` nearest that an operator taught, so that no number of callers hides these.
        """

    def lesson(self, query_id: str) -> Mapping[Id, str]:
        """The capabilities that serve the request of this id, if an operator taught it, with the time (ISO 8601)."""

    def with_outcomes(self, ids: Collection[Id], caller: str, *, without: Collection[str] = ()) -> Mapping[Id, int]:
        """Those of these that were used for any remembered request that counts for a caller.

        That is one of the caller itself, or one that an operator confirmed, or those of two callers not in `without`;
        lessons are about one request and count for none of these.
        The value is the number of the former two: no other caller can change it.
        """


class MemoryWriter(Protocol):
    """Writes what `Memory` reads; what is written is found within a second.

    A write with an older version than the latest one of the same query id is a no-op.
    """

    def version(self) -> int:
        """A version for what is read from now on."""

    def remember(self, memories: Sequence[Remembered], *, version: int) -> None:
        """Store requests, or replace those of the same query ids."""

    def forget(self, query_ids: Collection[str], *, version: int) -> None:
        """Remove requests."""


# --- clock, identifiers, and what observers are told: log and metrics read the same values ---


class Clock(Protocol):
    """The time; tests replace it."""

    def now(self) -> str: ...  # ISO 8601 in UTC
    def elapsed_ms(self) -> float: ...  # Milliseconds of a monotonic clock


Ids: TypeAlias = Callable[[], str]  # A source of unique identifiers


class Measure(NamedTuple):
    """A number and its unit."""

    value: float
    unit: Literal["Count", "Milliseconds", "None"]


NO_DIMENSIONS: Mapping[str, str] = MappingProxyType({})


class Metrics(Protocol):
    """Emits time series. Never fails."""

    def __call__(self, measures: Mapping[str, Measure], dimensions: Mapping[str, str] = NO_DIMENSIONS) -> None:
        """Emit these at one time, under dimensions in addition to the service's name."""


class ServiceState(NamedTuple):
    """Contents and spending of a local service, at one moment."""

    capabilities: Mapping[tuple[str, str], int]
    """By kind (`unknown` until a profile tells it) and state: `waiting`, `rejected`, `raw` or `enriched`."""
    findable: int
    waiting: int  # Changes in the queue, or being handled
    oldest_s: float  # Seconds since the first of those in the queue was made; 0 without any
    dead: int
    sources: Mapping[str, int]  # By the result of their latest sync: `ok`, `failed` or `never`
    vectors: Mapping[bool, int]  # How often the vector of a query was known, and not known
    usage: Mapping[str, Usage]  # By model


class Observation:
    """An event that observers receive."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(Observation):
    """An answer to a search; its trace has the stages. `request_id` is that of the log of requests, if there is one."""

    shortlist: Shortlist
    audiences: Collection[str] = ()
    scope: Scope = ANYWHERE
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFailed(Observation):
    """An operation of the application that failed by no fault of its caller."""

    operation: str
    error: CapabilityError
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackRecorded(Observation):
    """A feedback, and its outcomes that were new."""

    feedback: Feedback
    new: Sequence[Outcome]
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProcessed(Observation):
    """A batch of changes, and what its models cost."""

    outcomes: Mapping[Id, ChangeResult]
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDelayed(Observation):
    """So many changes that will be delivered again: a store or the index did not answer, or a lone one met a bug."""

    changes: int
    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsRefused(Observation):
    """Models that refuse every request, once for each capability or answer that lacks them."""

    refused: Collection[Refusal]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterCalled(Observation):
    """A call of the writer, after its end."""

    took_ms: float
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHandled(Observation):
    """A request of the local service, after its response."""

    method: str
    route: str  # The template of its path, of which there is a fixed number
    status: int
    took_ms: float
    request_id: str


Observer: TypeAlias = Callable[[Observation], None]
"""Watches the system. Safe to call from several threads; returns at once and never fails."""
