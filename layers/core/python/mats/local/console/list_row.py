"""One row of the console's list."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from mats.domain.capability.capability import Id, Kind, Lifecycle, parts
from mats.domain.profile.profile import Profile
from mats.domain.text.text import clip, content_words
from mats.local.preview.advice import SPARSE

_MAX_SUMMARY, _MAX_ERROR = 200, 1_000
WAITING = "waiting"
"""Status of a registered capability without a profile."""


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
    `updated` is the time of its latest revision, `registered` of its first registration (ISO 8601, UTC), or empty.
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
    registered: str = ""
    namespace: str = field(init=False)
    search_text: str = field(init=False, repr=False)
    """Id and provider, case-folded."""
    shows: tuple[Show, ...] = field(init=False, repr=False)
    """The named filters that it matches."""

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
    """Whether words find it, and it has no vector of this encoder yet; never without an encoder."""
    return bool(encoder) and profile.findable and profile.encoder != encoder


def list_row(profile: Profile, *, indexed: bool, encoder: str = "") -> ListRow:
    """The row of a profile; `indexed`: the index has this revision; `encoder`: the name of the one in use, or empty."""
    description = profile.source.description if profile.source else ""
    return ListRow(
        id=profile.id,
        kind=profile.kind,
        summary=clip(profile.enrichment.summary or description, _MAX_SUMMARY),
        provider=profile.provider,
        provider_verified=profile.provider_verified,
        status=profile.status,
        error=clip(profile.error, _MAX_ERROR),
        lifecycle=profile.lifecycle,
        trust=profile.trust,
        enriched=profile.enriched,
        sparse=sparse_reason(description) if profile.source else "",
        callable=bool(profile.invocation) or profile.source is None,
        suspicious=profile.suspicious,
        rev=profile.rev,
        findable=indexed and profile.findable,
        vector_pending=indexed and is_vector_pending(profile, encoder),
        updated=profile.cause.time if profile.cause else "",
        registered=profile.first_registered,
    )


def sparse_reason(description: str) -> str:
    """Why a description is sparse; empty if it is not."""
    count = len(set(content_words(description)))
    if count >= SPARSE:
        return ""
    return f"its description has {count} content word{'' if count == 1 else 's'}" if count else "no description"
