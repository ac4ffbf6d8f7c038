"""The rows of the list: what they show, which a query selects, in which order, and the counts of each facet."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from itertools import chain
from typing import Annotated, Any

from pydantic import Field

from mats.domain.capability.capability import Id, Kind, Lifecycle, parts
from mats.domain.profile.profile import Profile
from mats.domain.text.words import clip, content_words
from mats.edge.schema import Parameters

_MAX_SUMMARY, _MAX_ERROR = 200, 1_000
_SPARSE = 8  # A description with fewer content words is sparse
WAITING = "waiting"  # Status of a registered capability without a profile


class Show(StrEnum):
    """The named filters of the list."""

    ALL = "all"
    SPARSE = "sparse"
    REJECTED = "rejected"
    SUSPICIOUS = "suspicious"
    DEPRECATED = "deprecated"
    UNENRICHED = "unenriched"
    UNCALLABLE = "uncallable"
    PENDING = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRow:
    """A capability in the list.

    `sparse` is the reason why its description is sparse; `error` why it was rejected or its change is a dead letter.
    `callable` is false if its owner gave no way to call it; true also where no profile says so yet.
    `vector_pending`: words find it, and it has no vector of the encoder yet.
    `updated` is the time of its latest revision (ISO 8601, UTC), or empty.
    """

    id: Id
    kind: Kind | None
    summary: str = ""
    provider: str = ""
    provider_verified: bool = False
    status: str = WAITING
    error: str = ""
    lifecycle: str = Lifecycle.ACTIVE
    trust: int | None = None
    enriched: bool = False
    sparse: str = ""
    callable: bool = True
    suspicious: tuple[str, ...] = ()
    rev: int = 0
    findable: bool = False
    vector_pending: bool = False
    updated: str = ""
    namespace: str = field(init=False)
    search_text: str = field(init=False, repr=False)  # Id and provider, case-folded
    shows: tuple[Show, ...] = field(init=False, repr=False)  # The named filters that it matches

    def __post_init__(self) -> None:
        object.__setattr__(self, "namespace", parts(self.id)[0])
        object.__setattr__(self, "search_text", f"{self.id}\n{self.provider}".casefold())
        object.__setattr__(self, "shows", tuple(show for show, matches in _FILTERS.items() if matches(self)))

    def to_json(self) -> dict[str, Any]:
        row = {"name": parts(self.id)[1], **asdict(self)}
        del row["findable"], row["search_text"], row["shows"]
        return row


_FILTERS: dict[Show, Callable[[ListRow], bool]] = {
    Show.ALL: lambda row: True,
    Show.SPARSE: lambda row: bool(row.sparse),
    Show.REJECTED: lambda row: bool(row.error),
    Show.SUSPICIOUS: lambda row: bool(row.suspicious),
    Show.DEPRECATED: lambda row: row.lifecycle == Lifecycle.DEPRECATED,
    Show.UNENRICHED: lambda row: not row.enriched,
    Show.UNCALLABLE: lambda row: not row.callable,
    Show.PENDING: lambda row: row.vector_pending,
}


def is_vector_pending(profile: Profile, encoder: str) -> bool:
    """True if words find it, and it has no vector of this encoder yet; never without an encoder."""
    return bool(encoder) and profile.findable and profile.encoder != encoder


_AS_IN_PROFILE = (
    "id", "kind", "provider", "provider_verified", "status", "lifecycle", "trust", "enriched", "suspicious", "rev",
)  # fmt: skip


def list_row(profile: Profile, *, indexed: bool, encoder: str = "") -> ListRow:
    """The row of a profile; `indexed`: the index has this revision; `encoder`: the name of the one in use, or empty."""
    description = profile.source.description if profile.source else ""
    return ListRow(
        **{name: getattr(profile, name) for name in _AS_IN_PROFILE},
        summary=clip(profile.enrichment.summary or description, _MAX_SUMMARY),
        error=clip(profile.error, _MAX_ERROR),
        sparse=sparse_reason(description) if profile.source else "",
        callable=bool(profile.invocation) or profile.source is None,
        findable=indexed and profile.findable,
        vector_pending=indexed and is_vector_pending(profile, encoder),
        updated=profile.cause.time if profile.cause else "",
    )


def sparse_reason(description: str) -> str:
    """Why a description is sparse; empty if it is not."""
    count = len(set(content_words(description)))
    if count >= _SPARSE:
        return ""
    return f"its description has {count} content word{'' if count == 1 else 's'}" if count else "no description"


MAX_TEXT = 2_000  # Characters of a text parameter
_Text = Annotated[str, Field(max_length=MAX_TEXT)]


class Sort(StrEnum):
    """The columns to sort by; descending with a minus."""

    ID = "id"
    TRUST = "trust"
    TRUST_DOWN = "-trust"
    UPDATED = "updated"
    UPDATED_DOWN = "-updated"


_COLUMNS: Mapping[str, Callable[[ListRow], Any]] = {
    "trust": lambda row: row.trust,
    "updated": lambda row: row.updated or None,
}
"""The value of a row in each column; None: it has none, and comes last."""


class ListQuery(Parameters):
    """The parameters of a page of the list: its filters, its order, its start and its length."""

    show: Show = Show.ALL
    kind: tuple[Kind, ...] = ()
    ns: tuple[_Text, ...] = ()
    """Namespaces: a capability is in one of them or below it."""
    q: _Text = ""
    sort: Sort = Sort.ID
    after: _Text = ""
    limit: Annotated[int, Field(ge=1, le=200)] = 50

    def select(self, rows: Sequence[ListRow]) -> Sequence[ListRow]:
        text, below = self.q.casefold(), tuple(f"{one.rstrip('.*')}." for one in self.ns if one)
        if self.show is not Show.ALL:
            rows = [row for row in rows if self.show in row.shows]
        if self.kind:
            rows = [row for row in rows if row.kind in self.kind]
        if below:
            rows = [row for row in rows if f"{row.namespace}.".startswith(below)]
        return [row for row in rows if text in row.search_text] if text else rows

    def order(self, rows: Sequence[ListRow]) -> Sequence[ListRow]:
        """Rows, which are in order of id, in the order asked for; ties by id."""
        if self.sort is Sort.ID:
            return rows
        name = self.sort.removeprefix("-")
        values = [*map(_COLUMNS[name], rows)]  # no pairs: so many new objects start a garbage collection
        present = (place for place, value in enumerate(values) if value is not None)
        places = sorted(present, key=values.__getitem__, reverse=name != self.sort)
        return [
            *map(rows.__getitem__, places),
            *(row for row, value in zip(rows, values, strict=True) if value is None),
        ]


def count_shows(rows: Iterable[ListRow]) -> dict[str, int]:
    counts = Counter(chain.from_iterable(row.shows for row in rows))
    return {show: counts[show] for show in Show}
