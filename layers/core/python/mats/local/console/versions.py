"""The revisions of a capability."""

from typing import Any

from mats.domain.profile.profile import Profile


def versions_json(profiles: list[Profile]) -> list[dict[str, Any]]:
    """Revisions (oldest first) as JSON, newest first, each with the fields that differ from the revision before."""
    before: dict[str, Any] | None = None
    versions = []
    for profile in profiles:
        fields = _fields(profile)
        names = {**fields, **before} if before else {}
        changed = [name for name in names if fields.get(name) != (before or {}).get(name)]
        versions.append(
            {
                "rev": profile.rev,
                "status": profile.status,
                "enriched": profile.enriched,
                "origin": profile.origin,
                "cause": profile.cause.model_dump() if profile.cause else None,
                "changed": changed,
            }
        )
        before = fields
    return versions[::-1]


_BOOKKEEPING = {"content", "rev", "indexed_rev", "cause", "first_registered", "first_text", "owner_examples"}
"""Fields that differ between revisions without a change of the capability."""


def _fields(profile: Profile) -> dict[str, Any]:
    """The fields that can change, flat."""
    fields = profile.model_dump(mode="json", exclude={*_BOOKKEEPING, "enrichment", "source"})
    return {**fields, **profile.enrichment.model_dump(), **(profile.source.model_dump() if profile.source else {})}
