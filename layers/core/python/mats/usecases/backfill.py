"""Backfill: enrich again the profiles that a new prompt or model has made stale."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.domain.errors import RegistrationInvalid
from mats.domain.profile.profile import Cause, Status
from mats.ports import Change, Clock, Ids, Item, Stored
from mats.usecases.deadline import Progress, in_pages
from mats.usecases.drafts import Pass, ProfileMaker, parse_item
from mats.usecases.enrich import Enrich
from mats.usecases.resend import Resend


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Send stale profiles down the offline path; a current one costs two reads. Idempotent: a second run resumes."""

    enrich: Enrich | Resend
    clock: Clock
    ids: Ids
    page: int = 64

    def __call__(self, ids: Iterable[Id]) -> Iterator[Progress]:
        """Enrich the stale ones of these, a page at a time; a model that refuses one is not called for the others.

        Raises DependencyFailed: a store did not answer; run it again to resume.
        """
        run = self.enrich.maker.begin(probe=True)
        for page in in_pages(ids, self.page):
            stale = self.stale(page, run)
            cause = Cause(event_id=f"backfill-{self.ids()}", time=self.clock.now())
            outcomes = self.enrich([Change(id, cause) for id in stale], run=run)
            counts = {"compared": len(page), "sent": len(stale) - len(outcomes)}  # to the event path
            yield Progress(counts, page[-1], outcomes=outcomes)

    def stale(self, ids: Sequence[Id], run: Pass | None = None) -> list[Id]:
        """Ids without an active profile, or with one made by another writer, prompt or encoder.

        Raises DependencyFailed: a store did not answer.
        """
        items, kept = self.enrich.registry.get(ids), self.enrich.profiles.get(ids)
        maker = (run or self.enrich.maker.begin()).maker
        return [id for id in ids if id in items and _is_stale(id, items[id], kept.get(id), maker)]


def _is_stale(id: Id, item: Item, kept: Stored | None, maker: ProfileMaker) -> bool:
    try:
        registration = parse_item(id, item, kept)
    except RegistrationInvalid:
        return kept is None
    if kept is None or kept.profile.status is not Status.ACTIVE:
        return True
    return maker.is_stale(kept.profile, registration)
