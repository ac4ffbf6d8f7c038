"""Describe and encode anew what another prompt or model has made stale, no faster than is wanted."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from mats.domain.capability import Id
from mats.domain.profile import Cause
from mats.ports import Change, Clock, Ids
from mats.usecases.enrich import Enrich, Outcome


@dataclass(frozen=True, slots=True)
class Renewed:
    """What was done to one page of ids."""

    looked_at: int
    outcomes: Mapping[Id, Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Send what is stale down the offline path; what is not costs two reads. Run again, it does what is left.

    `per_minute` is the most capabilities that are sent; 0 does not hold back.
    """

    enrich: Enrich
    clock: Clock
    ids: Ids
    pause: Callable[[float], None]
    """Waits so many seconds."""
    per_minute: int = 0
    page: int = 64

    def __call__(self, ids: Iterable[Id]) -> Iterator[Renewed]:
        """Renew these, a page at a time.

        Raises:
            DependencyFailed: a store did not answer; run it again, what was renewed stays so.
        """
        remaining = iter(ids)
        while page := list(islice(remaining, self.page)):
            outcomes: dict[Id, Outcome] = {}
            for part in _parts(self.enrich.stale(page), self._at_once):
                began = self.clock.elapsed_ms()
                cause = Cause(event_id=f"backfill-{self.ids()}", time=self.clock.now())
                outcomes |= self.enrich([Change(id, cause) for id in part])
                self._hold_back(began, len(part))
            yield Renewed(len(page), outcomes)

    @property
    def _at_once(self) -> int:
        """A tenth of a minute's worth, so that the pace is even."""
        return max(1, min(self.page, self.per_minute // 10)) if self.per_minute else self.page

    def _hold_back(self, began_ms: float, sent: int) -> None:
        """Wait until the next may be sent; time that was not used up is not made good later."""
        if self.per_minute:
            due_ms = began_ms + 60_000 * sent / self.per_minute
            self.pause(max(0.0, due_ms - self.clock.elapsed_ms()) / 1000)


def _parts(ids: Collection[Id], size: int) -> Iterator[list[Id]]:
    remaining = iter(ids)
    while part := list(islice(remaining, size)):
        yield part
