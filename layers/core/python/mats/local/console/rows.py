"""A capability on one line of a list."""

from dataclasses import dataclass, field
from typing import Any

from mats.domain.advice import SPARSE, content_words
from mats.domain.capability import Id, Kind, Lifecycle, parts
from mats.domain.profile import Profile
from mats.domain.text import clip

_LONGEST_SUMMARY, _LONGEST_ERROR = 200, 1_000
WAITING = "waiting"
"""The status of what is registered and has no profile yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a list says of a capability.

    `sparse` says what its description lacks, if it does; `error` why it was rejected, or a change of it given up.
    """

    id: Id
    kind: Kind | None
    summary: str = ""
    provider: str = ""
    status: str = WAITING
    error: str = ""
    lifecycle: str = Lifecycle.ACTIVE
    trust: int | None = None
    enriched: bool = False
    sparse: str = ""
    suspicious: tuple[str, ...] = ()
    rev: int = 0
    findable: bool = False
    sought: str = field(init=False, repr=False)
    """What a search in the list looks through."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sought", f"{self.id}\n{self.provider}".casefold())

    @property
    def deprecated(self) -> bool:
        """Whether its owner advises against it."""
        return self.lifecycle == Lifecycle.DEPRECATED

    def told(self) -> dict[str, Any]:
        """The row as JSON."""
        namespace, name = parts(self.id)
        return {
            "id": self.id,
            "kind": self.kind,
            "namespace": namespace,
            "name": name,
            "summary": self.summary,
            "provider": self.provider,
            "status": self.status,
            "error": self.error,
            "lifecycle": self.lifecycle,
            "trust": self.trust,
            "enriched": self.enriched,
            "sparse": self.sparse,
            "suspicious": list(self.suspicious),
            "rev": self.rev,
        }


def row_of(profile: Profile, *, indexed: bool) -> Row:
    """The row of a profile; `indexed` says whether the index has this very revision."""
    described = profile.source.description if profile.source else ""
    return Row(
        id=profile.id,
        kind=profile.kind,
        summary=clip(profile.enrichment.summary or described, _LONGEST_SUMMARY),
        provider=profile.provider,
        status=profile.status,
        error=clip(profile.error, _LONGEST_ERROR),
        lifecycle=profile.lifecycle,
        trust=profile.trust,
        enriched=profile.enriched,
        sparse=lacking(described) if profile.source else "",
        suspicious=profile.suspicious,
        rev=profile.rev,
        findable=indexed and profile.findable,
    )


def lacking(description: str) -> str:
    """What a description lacks, in words; empty if it says enough."""
    said = len(content_words(description))
    if said >= SPARSE:
        return ""
    return f"its description has {said} telling word{'' if said == 1 else 's'}" if said else "no description"
