"""Hand capabilities that need work to the event path, where enrichment has its own limits, retries and dead letters."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mats.domain.capability.capability import Id
from mats.domain.errors import OutOfTime
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.origin import same_text
from mats.domain.profile.profile import ChangeResult, Status
from mats.ports import Change, NamespaceChange, ProfileStore, Registry, Stored, TrustBook
from mats.usecases.deadline import NO_DEADLINE, SAVE_S, Deadline, in_pages
from mats.usecases.drafts import Draft, Pass, ProfileMaker, make_draft, remake
from mats.usecases.gate import Gate


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
    send: Callable[[Sequence[Id]], None]  # Puts a change of each into the event path
    renew: bool = False

    def __call__(self, changes: Sequence[Change], *, run: Pass) -> Mapping[Id, ChangeResult]:
        """Send those that would need work in this run; the results of the others. No model is called.

        Raises DependencyFailed: a store or the event bus did not answer; some may have been sent.
        """
        ids = [change.id for change in changes]
        kept = self.profiles.get(ids)
        items, assigned = self.registry.get(ids), self.trust.get(ids)
        made = {id: make_draft(id, items.get(id), assigned[id], kept.get(id), run) for id in ids}
        known = {id: made[id] for id in kept if kept[id].profile.findable or kept[id].profile.approved}
        causes = {change.id: change.cause for change in changes}
        drafts = made | Gate(self.profiles, run, causes)(known, kept, assigned)
        pending = [id for id in ids if self._needs_work(drafts[id], assigned[id], kept.get(id), run)]
        if pending:
            self.send(pending)
        return dict.fromkeys((id for id in ids if id not in set(pending)), ChangeResult.UNCHANGED)

    def _needs_work(self, draft: Draft, assigned: Assigned, kept: Stored | None, run: Pass) -> bool:
        """Whether enrichment would change a profile; `draft` is as the gate decides without a model."""
        if kept is None:
            return draft.target.profile.status is not Status.DELETED
        if draft.problem or not kept.profile.is_indexed:
            return True
        before, made, registration = kept.profile, draft.target.profile, draft.registration
        by_others = registration and before.origin not in run.maker.origins(registration)
        if registration and by_others and not self.renew and same_text(before.origin, registration):
            same = {"encoder": before.encoder, "refused": before.refused, "approved": made.approved}
            return remake(registration, assigned, before).model_copy(update=same).seal().content != before.content
        lacks_vector = bool(run.maker.encoder and draft.registration and draft.target.vector is None)
        return made.content != before.content or draft.needs_writer or lacks_vector


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadChange:
    """Put a change of each capability into the event path, a page at a time. Repeating it sends the same again.

    A capability that is registered meanwhile needs no change: its profile is made with the new row.
    """

    registry: Registry
    send: Callable[[Sequence[Id]], None]  # Puts a change of each into the event path
    send_rest: Callable[[NamespaceChange], None]
    """Puts the change of a namespace into the event path, to go on with it in another run."""
    page: int = 100

    def __call__(self, change: NamespaceChange, deadline: Deadline = NO_DEADLINE) -> int:
        """Send them; the number sent. What the deadline leaves no time for goes on in another run.

        Raises OutOfTime: there was no time to begin; DependencyFailed: the registry or the event path did not answer;
        some may have been sent.
        """
        if not deadline.allows(SAVE_S):
            raise OutOfTime("the time of this run is up")
        sent = 0
        for page in in_pages(self.registry.ids(namespace=change.namespace, after=change.after), self.page):
            self.send(page)
            sent += len(page)
            if len(page) == self.page and not deadline.allows(SAVE_S):
                self.send_rest(replace(change, after=page[-1]))
                break
        return sent
