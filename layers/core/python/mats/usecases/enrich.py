"""Keep profiles and index in step with the registry: once per registration or change, never per query.

Events carry keys only, so their order and number do not matter: the latest state is read here. A revision is saved
first and indexed second, and `indexed_rev` records that both happened; after a crash between the two, redelivery of the
event completes the second, and an older run can never overwrite a newer one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from dataclasses import dataclass, replace

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, ModelRefused, ReplyUnusable
from mats.domain.profile.profile import Cause, ChangeResult, Profile, Refusal, Status
from mats.domain.profile.wording import is_same_work, sample_text
from mats.ports import Change, ProfileStore, Registry, SearchIndex, Stored, TrustBook
from mats.usecases.deadline import NO_DEADLINE, READ_S, SAVE_S, Deadline
from mats.usecases.drafts import ENCODER, NOT_ENRICHED, WRITER, Draft, Pass, ProfileMaker, make_draft
from mats.usecases.gate import Gate, OnWait, Vectors

_TRIES = 3  # Attempts after a conflict with another run: reading again is cheaper than redelivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrich:
    """Bring the profiles of changed capabilities up to date: parse, encode, save, index, and let a writer improve."""

    registry: Registry
    trust: TrustBook
    profiles: ProfileStore
    index: SearchIndex
    maker: ProfileMaker
    writer_threads: Executor  # Its number of threads limits concurrent calls of the writer
    on_wait: OnWait  # Called with the error of a model that a capability waits for; from several threads
    on_reject: Callable[[Sequence[Profile]], None]
    """Called with what is rejected or held before it is saved: at least once, after a crash twice."""
    on_refuse: Callable[[Sequence[Refusal]], None]
    """Called after a batch with the refusals of models, one for each role and capability."""

    def __call__(
        self, changes: Sequence[Change], deadline: Deadline = NO_DEADLINE, run: Pass | None = None
    ) -> Mapping[Id, ChangeResult]:
        """Enrich the changed capabilities, each once, and return their results.

        Changes for which the deadline leaves no time are `postponed`; those saved by then stay. Without a `run`, it is
        one with all models.

        Raises:
            DependencyFailed: a store or the index did not answer; deliver all changes again.
        """
        batch = _Batch(self, run or self.maker.begin(), deadline, {change.id: change.cause for change in changes})
        results = batch.enrich(batch.causes)
        for _ in range(_TRIES - 1):
            late = [id for id, result in results.items() if result is ChangeResult.SUPERSEDED]
            results |= batch.enrich(late) if late else {}
        return results


@dataclass(frozen=True, slots=True)
class _Batch:
    """The changes of one call, each with its cause."""

    to: Enrich
    run: Pass
    deadline: Deadline
    causes: Mapping[Id, Cause]

    def enrich(self, ids: Collection[Id]) -> dict[Id, ChangeResult]:
        """Try each once; what another run saved meanwhile is `superseded`."""
        if not self.deadline.allows(READ_S + SAVE_S):
            return dict.fromkeys(ids, ChangeResult.POSTPONED)
        kept = self.to.profiles.get(ids)  # read first, so that a later write by another run supersedes this one
        items, assigned = self.to.registry.get(ids), self.to.trust.get(ids)
        made = {id: make_draft(id, items.get(id), assigned[id], kept.get(id), self.run) for id in ids}
        gate = Gate(self.to.profiles, self.run, self.causes, self._limit, self.to.on_wait)
        encoded = {id: self._postpone(draft) for id, draft in self._encode(gate(made, kept, assigned)).items()}
        if not self.deadline.allows(SAVE_S):
            return dict.fromkeys(ids, ChangeResult.POSTPONED)
        drafts = self._save(encoded, kept)
        drafts |= self._describe(drafts)
        refused = [draft.target.profile for draft in drafts.values() if draft.problem is ChangeResult.REFUSED]
        if refused:
            self.to.on_refuse([refusal for profile in refused for refusal in profile.refused])
        return {id: draft.result for id, draft in drafts.items()}

    def _describe(self, drafts: Mapping[Id, Draft]) -> dict[Id, Draft]:
        """The drafts that need the writer. Each is saved at its reply: a later failure cannot discard it."""
        unread = {id: draft for id, draft in drafts.items() if draft.needs_writer and draft.result.is_final}
        calls = {self.to.writer_threads.submit(self._describe_one, draft): id for id, draft in unread.items()}
        results = {id: replace(draft, problem=ChangeResult.POSTPONED) for id, draft in unread.items()}
        pending = set(calls)
        try:
            while pending:
                done, pending = wait(pending, timeout=self.deadline.wait_s(SAVE_S), return_when=FIRST_COMPLETED)
                if not done:
                    break
                for call in done:
                    id = calls[call]
                    described = self._encode({id: call.result()})
                    if self.deadline.allows(SAVE_S):
                        results |= self._save(described, {id: drafts[id].target})
        finally:
            for call in calls:
                call.cancel()  # after a failed save, pending calls would be paid for in vain
        return results

    def _describe_one(self, draft: Draft) -> Draft:
        """The draft with the writer's enrichment; after an unusable reply, the raw profile with the reason."""
        if draft.registration is None:
            return draft
        maker, raw = self.run.maker, draft.target.profile
        fresh, labels = replace(draft, problem=None, saved=False), {"event_id": self.causes[raw.id].event_id}
        try:
            better = maker.describe(draft.registration, draft.assigned, labels)
        except ReplyUnusable as error:
            noted = {"origin": maker.recipe.origin(draft.registration), "notes": (f"{NOT_ENRICHED}{error}",)}
            profile = raw.without_refusal(WRITER).model_copy(update=noted).seal()
            return replace(fresh, target=replace(draft.target, profile=profile))
        except DependencyFailed as error:
            self.to.on_wait(raw.id, error)
            return _mark_failed(draft, WRITER, error)
        return replace(fresh, target=Stored(better.with_approved(raw.approved)))

    def _encode(self, drafts: Mapping[Id, Draft]) -> dict[Id, Draft]:
        """The drafts with missing vectors added; if the encoder fails or is late, they stay lexically findable."""
        encoded, maker = dict(drafts), self.run.maker
        missing = [id for id, draft in drafts.items() if draft.is_encoded and draft.target.vector is None]
        if not maker.encoder or not self.run.vectors or not missing:
            return encoded
        try:
            vectors = self._limit(lambda: maker.encode([drafts[id].target.profile for id in missing]))
        except DependencyFailed as error:
            self.to.on_wait(missing[0], error)
            return encoded | {id: _mark_failed(drafts[id], ENCODER, error) for id in missing}
        for id, vector in zip(missing, vectors, strict=True):
            if vector is None:
                encoded[id] = replace(drafts[id], problem=ChangeResult.DEGRADED)
            else:
                profile = drafts[id].target.profile.without_refusal(ENCODER)
                encoded[id] = replace(drafts[id], target=maker.to_stored(profile, vector))
        return encoded

    def _limit(self, work: Callable[[], Vectors]) -> Vectors:
        return self.deadline.call(work, reserve_s=SAVE_S)

    def _postpone(self, draft: Draft) -> Draft:
        """The draft; if the later run would change it, it is postponed."""
        later, done = self.run.later, draft.problem in (None, ChangeResult.REFUSED)
        if later and done and draft.registration and later.is_stale(draft.target.profile, draft.registration):
            return replace(draft, problem=ChangeResult.POSTPONED)
        return draft

    def _save(self, drafts: Mapping[Id, Draft], kept: Mapping[Id, Stored]) -> dict[Id, Draft]:
        """Save and then index changed profiles; index again saved revisions that the index lacks."""
        fresh = {
            id: _next_revision(draft.target, kept.get(id), self.causes[id])
            for id, draft in drafts.items()
            if not _is_same(draft.target, kept.get(id))
        }
        missed = {id: one for id, one in kept.items() if id not in fresh and not one.profile.is_indexed}
        unannounced = self._announce_rejections([entry.profile for entry in fresh.values()])
        fresh = {id: entry for id, entry in fresh.items() if id not in unannounced}
        late = self.to.profiles.save(list(fresh.values())) if fresh else ()
        entries = missed | {id: entry for id, entry in fresh.items() if id not in late}
        if entries:
            self.to.index.put(list(entries.values()))
            self.to.profiles.mark_indexed({id: entry.profile.rev for id, entry in entries.items()})
        current = {**kept, **{id: _as_indexed(entry) for id, entry in entries.items()}}
        results = {
            id: replace(draft, target=current.get(id, draft.target), saved=id in entries)
            for id, draft in drafts.items()
        }
        results |= {id: replace(drafts[id], problem=ChangeResult.SUPERSEDED) for id in late}
        return results | {id: replace(drafts[id], problem=ChangeResult.DEGRADED) for id in unannounced}

    def _announce_rejections(self, fresh: Sequence[Profile]) -> Collection[Id]:
        """Announce what is rejected or held among new revisions; returns the ids to retry because announcing failed."""
        rejected = [profile for profile in fresh if profile.status in (Status.REJECTED, Status.HELD)]
        try:
            if rejected:
                self.to.on_reject(rejected)
        except DependencyFailed as error:
            self.to.on_wait(rejected[0].id, error)
            return [profile.id for profile in rejected]
        return ()


def _as_indexed(entry: Stored) -> Stored:
    return replace(entry, profile=entry.profile.model_copy(update={"indexed_rev": entry.profile.rev}))


def _mark_failed(draft: Draft, role: str, error: DependencyFailed) -> Draft:
    """The draft as it is; if the model refuses, it is marked, and the change is done until an operator has acted."""
    if not isinstance(error, ModelRefused):
        return replace(draft, problem=ChangeResult.DEGRADED)
    profile = draft.target.profile.with_refusal(Refusal(role=role, model=error.model, cause=error.cause))
    return replace(draft, problem=ChangeResult.REFUSED, target=replace(draft.target, profile=profile))


def _is_same(target: Stored, kept: Stored | None) -> bool:
    """True if saving would be a no-op: equal content and a vector on both sides or on neither."""
    if kept is None:
        return target.profile.status is Status.DELETED
    return target.profile.content == kept.profile.content and (target.vector is None) == (kept.vector is None)


def _next_revision(target: Stored, kept: Stored | None, cause: Cause) -> Stored:
    before = kept.profile if kept else None
    numbered = target.profile.model_copy(
        update={
            "rev": before.rev + 1 if before else 1,
            "indexed_rev": before.indexed_rev if before else 0,
            "cause": cause,
            **_seniority(target.profile, before, cause),
            "rated_since": _rated_since(target.profile, before, cause),
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


def _rated_since(after: Profile, before: Profile | None, cause: Cause) -> str:
    if not after.is_rated:
        return ""
    return before.rated_since if before and before.is_rated else cause.time


def _text(profile: Profile) -> tuple[object, ...]:
    """The attributes that the sample of a text depends on."""
    return profile.name, profile.source, profile.tags, profile.enrichment, profile.enriched, profile.owner_examples
