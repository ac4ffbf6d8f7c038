"""Erase every trace of a capability, such that nothing that is under way can bring it back: docs/decisions/0032."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import NOTHING_ASSIGNED
from mats.domain.profile.profile import Cause, Status, tombstone
from mats.ports import Clock, Ids, Outcomes, ProfileStore, Registry, Stored, TrustBook


class Traces(NamedTuple):
    """The stored data of a capability."""

    registration: bool
    trust: bool
    profile: Status | None
    versions: int  # Number of earlier revisions of the profile

    @property
    def is_gone(self) -> bool:
        """True if there is nothing but, perhaps, a tombstone."""
        left = self.registration or self.trust or self.versions
        return not left and self.profile in (None, Status.DELETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Erase:
    """Remove what content is made from, let the offline path write tombstones, then delete the versions.

    A tombstone has the id and no content. In the profiles it supersedes every revision that a run under way may want to
    write, and in each index, with its number as external version, every document of such a run. So both stay for days.
    """

    registry: Registry
    trust: TrustBook
    profiles: ProfileStore
    clock: Clock
    ids: Ids
    outcomes: Outcomes | None = None
    settle: Callable[[Id], None]
    """Takes a removed capability down the offline path, and returns when profile and index have its tombstone."""

    def traces(self, id: Id) -> Traces:
        """Count the stored data. Raises DependencyFailed: a store did not answer."""
        kept = self.profiles.get([id]).get(id)
        return Traces(
            registration=id in self.registry.get([id]),
            trust=id in self.trust.rows([id]),
            profile=kept.profile.status if kept else None,
            versions=len(self.profiles.versions(id)),
        )

    def __call__(self, id: Id) -> int:
        """Erase a capability; the number of earlier revisions deleted. Repeating it resumes.

        Raises DependencyFailed: a store or the index did not answer, or it was registered again meanwhile.
        """
        self.registry.remove(id)
        self.trust.put(id, NOTHING_ASSIGNED)
        if id not in self.profiles.get([id]):
            cause = Cause(event_id=f"erase-{self.ids()}", time=self.clock.now())
            guard = Stored(tombstone(id, rev=1, cause=cause))  # against a run that is about to write the first revision
            self.profiles.save([guard])
        self.settle(id)
        kept = self.profiles.get([id]).get(id)
        if kept and (kept.profile.status is not Status.DELETED or kept.profile.indexed_rev != kept.profile.rev):
            raise DependencyFailed(f"{id} is still being removed from the index, or was registered again; run it again")
        if self.outcomes:
            self.outcomes.forget(id, lessons=True)
        return self.profiles.erase(id)
