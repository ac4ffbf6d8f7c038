"""Compare registry, profiles and index, and repair differences, for example after lost events."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Cause, ChangeResult, Profile, Status, tombstone
from mats.ports import Change, Clock, Ids, ProfileStore, Registry, SearchIndex, Stored
from mats.usecases.deadline import Progress, in_pages
from mats.usecases.drafts import NOT_ENRICHED, Pass
from mats.usecases.enrich import Enrich
from mats.usecases.resend import Resend

KEEP_TOMBSTONES_FOR = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconcile:
    """Send every capability down the offline path again; for consistent ones this is a comparison only."""

    enrich: Enrich | Resend
    registry: Registry
    profiles: ProfileStore
    index: SearchIndex
    clock: Clock
    ids: Ids
    page: int = 64

    def pages(self, after: Id | None = None, stage: int = 0) -> Iterator[tuple[Progress, Sequence[Id]]]:
        """Every id in registry (stage 0), profiles (1) or index (2) once, as listed, with where each page ends.

        Nothing is held but a page, so a run begins at once, however many there are. A page is empty where all of it is
        in a place before.
        """
        places = (self.registry.ids, self.profiles.ids, self.index.ids)
        for place, ids in list(enumerate(places))[stage:]:
            for page in in_pages(ids(after=after if place == stage else None), self.page):
                before = set[Id]().union(*(earlier.get(page) for earlier in (self.registry, self.profiles)[:place]))
                yield Progress({}, page[-1], place), [id for id in page if id not in before]

    def __call__(self, ids: Iterable[Id]) -> Iterator[Progress]:
        """Repair these, a page at a time; a model that refuses one is not called for the others.

        Raises DependencyFailed: a store did not answer; run it again to resume.
        """
        run = self.enrich.maker.begin(probe=True)
        for page in in_pages(ids, self.page):
            yield self.repair(page, run)

    def repair(self, page: Sequence[Id], run: Pass) -> Progress:
        """Repair one page; raises as a whole run does.

        It counts what was `sent` to the event path, and as `given_up` what stays raw, as no reply could be used.
        """
        indexed = self.index.revisions(page)
        orphans = self._drop_orphans(page, indexed)
        cause = Cause(event_id=f"reconcile-{self.ids()}", time=self.clock.now())
        outcomes = self.enrich([Change(id, cause) for id in page], run=run)
        kept = self.profiles.get(page)
        expired = [id for id, entry in kept.items() if id in indexed and self._is_expired(entry.profile)]
        missed = [kept[id] for id in kept if self._is_missing(kept[id].profile, indexed, outcomes.get(id))]
        self.index.put(missed)
        self.index.purge(expired)
        given_up = sum("".join(entry.profile.notes).startswith(NOT_ENRICHED) for entry in kept.values())
        counts = {"compared": len(page), "sent": len(page) - len(outcomes), "reindexed": len(missed)}
        counts |= {"orphans": orphans, "purged": len(expired), "given_up": given_up}
        return Progress(counts, outcomes=outcomes)

    def _drop_orphans(self, page: Sequence[Id], indexed: Mapping[Id, int]) -> int:
        """Remove index entries that are newer than their profile (restored from a backup) or have none.

        A registered capability is indexed again with its profile.
        """
        kept = {id: entry.profile.rev for id, entry in self.profiles.get(list(indexed)).items()}
        orphans = [id for id in indexed if indexed[id] > kept.get(id, 0)]
        gone = [Stored(tombstone(id, rev=indexed[id] + 1)) for id in orphans]
        if gone:
            self.index.put(gone)
            self.index.purge(orphans)
        return len(orphans)

    def _is_missing(self, profile: Profile, indexed: Mapping[Id, int], outcome: ChangeResult | None) -> bool:
        """True if the index lacks a profile's current revision, although enrichment changed nothing."""
        if outcome not in (ChangeResult.UNCHANGED, ChangeResult.REFUSED) or self._is_expired(profile):
            return False
        return indexed.get(profile.id) != profile.rev

    def _is_expired(self, profile: Profile) -> bool:
        """True if a tombstone is older than any event that could still arrive."""
        if profile.status is not Status.DELETED or profile.cause is None:
            return False
        age = datetime.fromisoformat(self.clock.now()) - datetime.fromisoformat(profile.cause.time)
        return age > KEEP_TOMBSTONES_FOR
