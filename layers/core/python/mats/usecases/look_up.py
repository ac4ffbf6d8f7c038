"""Get one capability, if it is visible to the caller."""

from collections.abc import Collection
from dataclasses import dataclass

from mats.domain.capability import Id
from mats.domain.errors import CapabilityNotFound
from mats.domain.profile import Profile
from mats.domain.query import Filter
from mats.ports import SearchIndex


@dataclass(frozen=True, slots=True)
class LookUp:
    """The indexed profile of a capability."""

    index: SearchIndex

    def __call__(self, id: Id, audiences: Collection[str] = ()) -> Profile:
        """The profile, for a caller in these audiences.

        Raises:
            CapabilityNotFound: there is none, or it is not visible to this caller; the message is the same.
            DependencyFailed: the index did not answer.
        """
        profile = self.index.fetch([id]).get(id)
        if profile is None or not Filter(audiences=frozenset(audiences)).sees(profile.visible_to):
            raise CapabilityNotFound(id)
        return profile
