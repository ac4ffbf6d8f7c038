"""The reliability of one capability, as one caller's answers count it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.learning.reliability import Reliability, count
from mats.domain.shortlist.scoring import TrustRule
from mats.ports import Clock
from mats.usecases.discover import Tallies


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReliability:
    """Reads what callers reported on a capability."""

    tallies: Callable[[Collection[Id]], Tallies]
    trust: TrustRule
    clock: Clock

    def __call__(self, id: Id, trust: int | None, caller: str) -> Reliability | None:
        """The posterior of this trust; None if nothing is reported that counts for the caller, or it cannot be read."""
        try:
            tallies = self.tallies([id]).get(id, ())
        except DependencyFailed:
            return None
        counts = count(tallies, asking=caller, now=self.clock.now())
        return self.trust.reliability(trust, counts) if counts else None
