"""Keep profiles and index in step with the registry: once per registration or change, never per query.

Events carry keys only, so their order and number do not matter: the latest state is read here. A revision is saved
first and indexed second, and `indexed_rev` records that both happened; after a crash between the two, redelivery of the
event completes the second, and an older run can never overwrite a newer one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from dataclasses import dataclass, replace

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import Cause, ChangeResult, Profile, Refusal, Status
from mats.domain.trust.near_duplicates import is_same_work, sample_text
from mats.ports import Change, ProfileStore, Registry, SearchIndex, Stored, TrustBook
from mats.usecases.deadline import NO_DEADLINE, READ_S, SAVE_S, Deadline
from mats.usecases.drafts import OnWait, ProfileDraft, ProfileMaker, describe, encode, make_draft

_TRIES = 3
"""Attempts after a conflict with another run: reading again is cheaper than redelivery."""


def _ignore_wait(id: Id, error: DependencyFailed) -> None:
    """The default."""


def _ignore_rejections(rejected: Sequence[Profile]) -> None:
    """The default."""


def _ignore_refusals(refused: Sequence[Refusal]) -> None:
    """The default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrich:
    """Bring the profiles of changed capabilities up to date: parse, encode, save, index, and let a writer improve."""

    registry: Registry
    trust: TrustBook
    profiles: ProfileStore
    index: SearchIndex
    maker: ProfileMaker
    writer_threads: Executor
    """Its number of threads limits concurrent calls of the writer."""
    on_wait: OnWait = _ignore_wait
    """Called with the error of a model that a capability waits for; from several threads."""
    on_reject: Callable[[Sequence[Profile]], None] = _ignore_rejections
    """Called with rejections before they are saved: at least once, after a crash twice."""
    on_refuse: Callable[[Sequence[Refusal]], None] = _ignore_refusals
    """Called after a batch with the refusals of models, one for each role and capability."""
    later: ProfileMaker | None = None
    """The maker of a later run: what it would change is saved and indexed, and `postponed`."""

    def __call__(self, changes: Sequence[Change], deadline: Deadline = NO_DEADLINE) -> Mapping[Id, ChangeResult]:
        """Enrich the changed capabilities, each once, and return their outcomes.

        Changes for which the deadline leaves no time are `postponed`; those saved by then stay.

        Raises:
            DependencyFailed: a store or the index did not answer; deliver all changes again.
        """
        causes = {change.id: change.cause for change in changes}
        later = self.later.with_current() if self.later else None
        run = replace(self, maker=self.maker.with_current(), later=later)
        outcomes = run._try(causes, deadline)
        for _ in range(_TRIES - 1):
            late = {id: causes[id] for id, outcome in outcomes.items() if outcome is ChangeResult.SUPERSEDED}
            outcomes |= run._try(late, deadline) if late else {}
        return outcomes

    def with_probe(self) -> "Enrich":
        """The same for one run over many capabilities: a model that has refused one is not called for the others."""
        return replace(self, maker=self.maker.with_probe())

    def with_memory(self) -> "Enrich":
        """The same for several runs over many changes: see `ProfileMaker`."""
        return replace(self, maker=self.maker.with_memory())

    def without_writer(self) -> "Enrich":
        """An earlier run over the same changes: raw profiles, and their vectors."""
        return replace(self, maker=self.maker.without_writer(), later=self.maker)

    def without_models(self) -> "Enrich":
        """An earlier run over the same changes that calls no model: raw profiles, findable by their words."""
        return replace(self, maker=self.maker.without_models(), later=self.maker)

    def _try(self, causes: Mapping[Id, Cause], deadline: Deadline) -> dict[Id, ChangeResult]:
        if not deadline.allows(READ_S + SAVE_S):
            return dict.fromkeys(causes, ChangeResult.POSTPONED)
        kept = self.profiles.get(causes)  # read first, so that a later write by another run supersedes this one
        items, assigned = self.registry.get(causes), self.trust.get(causes)
        made = {id: make_draft(id, items.get(id), assigned[id], kept.get(id), self.maker) for id in causes}
        encoded = self._postpone(self._encode(made, deadline))
        if not deadline.allows(SAVE_S):
            return dict.fromkeys(causes, ChangeResult.POSTPONED)
        drafts = self._save(encoded, kept, causes)
        drafts |= self._describe(drafts, causes, deadline)
        refused = [draft.target.profile for draft in drafts.values() if draft.outcome is ChangeResult.REFUSED]
        if refused:
            self.on_refuse([refusal for profile in refused for refusal in profile.refused])
        return {id: draft.outcome for id, draft in drafts.items()}

    def _describe(
        self, drafts: Mapping[Id, ProfileDraft], causes: Mapping[Id, Cause], deadline: Deadline
    ) -> dict[Id, ProfileDraft]:
        """The drafts that need the writer. Each is saved at its reply: a later failure cannot discard it."""
        unread = {id: draft for id, draft in drafts.items() if draft.needs_writer and draft.outcome.is_final}
        calls = {
            self.writer_threads.submit(describe, draft, self.maker, self.on_wait, {"event_id": causes[id].event_id}): id
            for id, draft in unread.items()
        }
        results = {id: replace(draft, outcome=ChangeResult.POSTPONED) for id, draft in unread.items()}
        pending = set(calls)
        try:
            while pending:
                done, pending = wait(pending, timeout=deadline.wait_s(SAVE_S), return_when=FIRST_COMPLETED)
                if not done:
                    break
                for call in done:
                    id = calls[call]
                    described = self._encode({id: call.result()}, deadline)
                    if deadline.allows(SAVE_S):
                        results |= self._save(described, {id: drafts[id].target}, causes)
        finally:
            for call in calls:
                call.cancel()  # after a failed save, pending calls would be paid for in vain
        return results

    def _encode(self, drafts: Mapping[Id, ProfileDraft], deadline: Deadline) -> dict[Id, ProfileDraft]:
        return encode(drafts, self.maker, self.on_wait, lambda work: deadline.call(work, reserve_s=SAVE_S))

    def _postpone(self, drafts: Mapping[Id, ProfileDraft]) -> Mapping[Id, ProfileDraft]:
        """The drafts; those that the later run would change are postponed."""
        if (later := self.later) is None:
            return drafts
        return {
            id: replace(draft, outcome=ChangeResult.POSTPONED)
            if draft.registration
            and draft.outcome.is_final
            and later.is_stale(draft.target.profile, draft.registration)
            else draft
            for id, draft in drafts.items()
        }

    def _save(
        self, drafts: Mapping[Id, ProfileDraft], kept: Mapping[Id, Stored], causes: Mapping[Id, Cause]
    ) -> dict[Id, ProfileDraft]:
        """Save and then index changed profiles; index again saved revisions that the index lacks."""
        fresh = {
            id: _next_revision(draft.target, kept.get(id), causes[id])
            for id, draft in drafts.items()
            if not _is_same(draft.target, kept.get(id))
        }
        unannounced = self._announce_rejections([entry.profile for entry in fresh.values()])
        fresh = {id: entry for id, entry in fresh.items() if id not in unannounced}
        late = self.profiles.save(list(fresh.values())) if fresh else ()
        missed = [
            kept[id]
            for id in drafts
            if id in kept and _is_missing_in_index(kept[id]) and id not in {*fresh, *unannounced}
        ]
        entries = [entry for id, entry in fresh.items() if id not in late] + missed
        if entries:
            self.index.put(entries)
            self.profiles.mark_indexed({entry.profile.id: entry.profile.rev for entry in entries})
        written = {entry.profile.id: _mark_indexed(entry) for entry in entries}
        current = {**kept, **written}
        results = {id: _with_outcome(draft, current.get(id), written=id in written) for id, draft in drafts.items()}
        results |= {id: replace(drafts[id], outcome=ChangeResult.SUPERSEDED) for id in late}
        return results | {id: replace(drafts[id], outcome=ChangeResult.DEGRADED) for id in unannounced}

    def _announce_rejections(self, fresh: Sequence[Profile]) -> Collection[Id]:
        """Announce the rejections among new revisions; returns the ids to retry because announcing failed."""
        rejected = [profile for profile in fresh if profile.status is Status.REJECTED]
        try:
            if rejected:
                self.on_reject(rejected)
        except DependencyFailed as error:
            self.on_wait(rejected[0].id, error)
            return [profile.id for profile in rejected]
        return ()


def _is_same(target: Stored, kept: Stored | None) -> bool:
    """Whether saving would be a no-op: equal content and a vector on both sides or on neither."""
    if kept is None:
        return target.profile.status is Status.DELETED
    return target.profile.content == kept.profile.content and (target.vector is None) == (kept.vector is None)


def _mark_indexed(entry: Stored) -> Stored:
    return replace(entry, profile=entry.profile.model_copy(update={"indexed_rev": entry.profile.rev}))


def _is_missing_in_index(kept: Stored) -> bool:
    return kept.profile.indexed_rev != kept.profile.rev


def _next_revision(target: Stored, kept: Stored | None, cause: Cause) -> Stored:
    before = kept.profile if kept else None
    numbered = target.profile.model_copy(
        update={
            "rev": before.rev + 1 if before else 1,
            "indexed_rev": before.indexed_rev if before else 0,
            "cause": cause,
            **_seniority(target.profile, before, cause),
        }
    )
    return replace(target, profile=numbered)


def _seniority(after: Profile, before: Profile | None, cause: Cause) -> dict[str, str]:
    """The time and the sample of the first text, while the text is nearly the same; a rewritten one starts anew."""
    if before and before.first_text and _text(before) == _text(after):
        return {"first_registered": before.first_registered, "first_text": before.first_text}
    if before and before.findable:
        first = before.first_text or sample_text(before)
        if is_same_work(first, after):
            return {"first_registered": before.first_registered, "first_text": first}
    return {"first_registered": cause.time, "first_text": sample_text(after)}


def _text(profile: Profile) -> tuple[object, ...]:
    """What the sample of a text depends on."""
    return profile.name, profile.source, profile.tags, profile.enrichment, profile.enriched, profile.owner_examples


def _with_outcome(draft: ProfileDraft, current: Stored | None, *, written: bool) -> ProfileDraft:
    """The draft with its final outcome and the current revision, if there is one."""
    changed = written or draft.outcome is ChangeResult.REFUSED or not draft.outcome.is_final
    return replace(draft, target=current or draft.target, outcome=draft.outcome if changed else ChangeResult.UNCHANGED)
