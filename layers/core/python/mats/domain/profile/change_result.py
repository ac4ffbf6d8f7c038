"""The result of one change on the offline path."""

from enum import StrEnum


class ChangeResult(StrEnum):
    """Result of enriching a change."""

    UNCHANGED = "unchanged"
    INDEXED = "indexed"
    REJECTED = "rejected"
    DELETED = "deleted"
    DEGRADED = "degraded"
    """Findable, but a model failed: deliver the event again."""
    REFUSED = "refused"
    """Findable, but a model refuses every request of this configuration: no delivery helps before an operator acts."""
    SUPERSEDED = "superseded"
    """Another run wrote first: deliver the event again."""
    POSTPONED = "postponed"
    """The time of the run was up: deliver the event again."""

    @property
    def is_final(self) -> bool:
        """Whether the event can be deleted from the queue."""
        return self not in (ChangeResult.DEGRADED, ChangeResult.SUPERSEDED, ChangeResult.POSTPONED)
