"""Hand capabilities that need work to the event path, where enrichment has its own limits, retries and dead letters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.origin import same_text
from mats.domain.profile.profile import ChangeResult, Profile, Status, profile_of
from mats.ports import Change, Item, ProfileStore, Registry, Stored, TrustBook
from mats.usecases.drafts import ProfileDraft, ProfileMaker, make_draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Resend:
    """Stands in for `Enrich` in a function that calls no model and writes no profile.

    A profile that only another writer, prompt or encoder would make anew is left alone, because a model costs money:
    that is a backfill's work, with `renew`.
    """

    registry: Registry
    trust: TrustBook
    profiles: ProfileStore
    maker: ProfileMaker
    send: Callable[[Sequence[Id]], None]
    """Puts a change of each into the event path."""
    renew: bool = False

    def __call__(self, changes: Sequence[Change]) -> Mapping[Id, ChangeResult]:
        """Send those that need work; the outcomes of the others.

        Raises:
            DependencyFailed: a store or the event bus did not answer; some may have been sent.
        """
        ids = [change.id for change in changes]
        kept = self.profiles.get(ids)
        items, assigned = self.registry.get(ids), self.trust.get(ids)
        pending = [id for id in ids if self._needs_work(id, items.get(id), assigned[id], kept.get(id))]
        if pending:
            self.send(pending)
        return dict.fromkeys((id for id in ids if id not in set(pending)), ChangeResult.UNCHANGED)

    def with_probe(self) -> "Resend":
        """The same for one run, with the writer that is chosen now. No model is called."""
        return replace(self, maker=self.maker.with_current())

    def _needs_work(self, id: Id, item: Item | None, assigned: Assigned, kept: Stored | None) -> bool:
        draft = make_draft(id, item, assigned, kept, self.maker)
        if kept is None:
            return draft.target.profile.status is not Status.DELETED
        if kept.profile.indexed_rev != kept.profile.rev:
            return True
        if not self.renew and draft.registration and self._is_of_another_recipe(kept.profile, draft.registration):
            return _as_before(draft.registration, assigned, kept.profile).content != kept.profile.content
        return draft.target.profile.content != kept.profile.content or draft.needs_writer or self._lacks_vector(draft)

    def _is_of_another_recipe(self, before: Profile, registration: Registration) -> bool:
        made_by_us = {self.maker.raw_recipe.origin(registration), self.maker.recipe.origin(registration)}
        return before.origin not in made_by_us and same_text(before.origin, registration)

    def _lacks_vector(self, draft: ProfileDraft) -> bool:
        return bool(self.maker.encoder and draft.registration and draft.target.vector is None)


def _as_before(registration: Registration, assigned: Assigned, before: Profile) -> Profile:
    """The profile of a registration with what models once wrote about the same text."""
    enrichment = before.enrichment if before.enriched else None
    profile = profile_of(
        registration, assigned=assigned, origin=before.origin, enrichment=enrichment, notes=before.notes
    )
    return profile.model_copy(update={"encoder": before.encoder, "refused": before.refused}).seal()
