"""A page of the registry as callers see it."""

from typing import Self

from pydantic import BaseModel, Field

from mats.domain.capability.capability import Kind, Lifecycle
from mats.domain.profile.profile import Profile


class ListedCapability(BaseModel, extra="forbid"):
    """One line of a list."""

    id: str
    kind: Kind
    summary: str
    trust: int | None
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    tags: list[str] = []

    @classmethod
    def of(cls, profile: Profile) -> Self:
        same = profile.model_dump(include={"trust", "lifecycle", "tags"})
        return cls(id=profile.id, kind=profile.indexed_kind, summary=profile.enrichment.summary, **same)


class CapabilityPage(BaseModel, extra="forbid"):
    """Capabilities in order of id."""

    capabilities: list[ListedCapability]
    following: str | None = Field(
        default=None, description="`after` of the next page, which may be empty; null: this is the last."
    )
