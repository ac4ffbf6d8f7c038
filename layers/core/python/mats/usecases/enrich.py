"""Keep profiles and index in step with the registry: once per registration or change, never per query.

Events carry keys only, so their order and number do not matter: what is read here is the latest state. A revision is
saved first and indexed second, and `indexed_rev` says whether both happened; so a kill between the two heals when the
event is delivered again, and an older run can never overwrite a newer one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace
from enum import StrEnum

from mats.domain.capability import Id, parts
from mats.domain.errors import DependencyFailed, Fault, KindConflict, RegistrationInvalid, ReplyUnusable
from mats.domain.fence import fitted
from mats.domain.grounding import grounded
from mats.domain.profile import (
    MAX_KEPT_BYTES,
    Cause,
    Profile,
    Recipe,
    Status,
    embedded_text,
    fitting,
    profile_of,
    same_text,
    with_owners_words,
)
from mats.domain.registration import Registration
from mats.ports import Change, Encoder, Item, ProfileStore, Registry, SearchIndex, Stored, TrustBook, Vector, Writer


class Outcome(StrEnum):
    """What became of one change."""

    UNCHANGED = "unchanged"
    INDEXED = "indexed"
    REJECTED = "rejected"
    DELETED = "deleted"
    DEGRADED = "degraded"
    """Findable, but a model failed: deliver the event again."""
    SUPERSEDED = "superseded"
    """Another run wrote first: deliver the event again."""

    @property
    def done(self) -> bool:
        """Whether the event can be forgotten."""
        return self not in (Outcome.DEGRADED, Outcome.SUPERSEDED)


NO_WRITER = "there is no writer: set MATS_BEDROCK=1 and AWS credentials, and MATS_WRITER_MODEL to a model"
_TRIES = 3
"""Where another run was faster: reading again is cheaper than being delivered again."""
_LONGEST_ERROR = 16_000
"""Bytes; an item can have thousands of faults, and a full row must hold what is said of them."""


def _unheard(id: Id, error: DependencyFailed) -> None:
    """Nobody asks why."""


def _unannounced(rejected: Sequence[Profile]) -> None:
    """Nobody hears of rejections."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """What should be kept of one capability, and what has become of it so far."""

    outcome: Outcome
    target: Stored
    registration: Registration | None = None
    unread: bool = False
    """A writer should read the registration still."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrich:
    """Bring the profiles of changed capabilities up to date: parse, encode, keep, and let a writer improve them."""

    registry: Registry
    trust: TrustBook
    profiles: ProfileStore
    index: SearchIndex
    encoder: Encoder | None
    writer: Writer | None
    readers: Executor
    """Where the writer is asked; its threads are how many calls run at once."""
    waits: Callable[[Id, DependencyFailed], None] = _unheard
    """Hears why a capability has to wait for a model; called from several threads."""
    rejects: Callable[[Sequence[Profile]], None] = _unannounced
    """Hears of rejections before they are kept, so that none goes unheard; after a crash, twice."""

    def __call__(self, changes: Sequence[Change]) -> Mapping[Id, Outcome]:
        """What became of each capability named; several changes of one are one.

        Raises:
            DependencyFailed: a store or the index did not answer; nothing is lost, deliver all again.
        """
        causes = {change.id: change.cause for change in changes}
        outcomes = self._once(causes)
        for _ in range(_TRIES - 1):
            late = {id: causes[id] for id, outcome in outcomes.items() if outcome is Outcome.SUPERSEDED}
            outcomes |= self._once(late) if late else {}
        return outcomes

    def _once(self, causes: Mapping[Id, Cause]) -> dict[Id, Outcome]:
        """What became of each of these, at one try."""
        kept = self.profiles.get(causes)  # first: whoever writes from here on makes this run late, never overwritten
        items, trust = self.registry.get(causes), self.trust.get(causes)
        drafts = {id: self._draft(id, items.get(id), trust.get(id), kept.get(id)) for id in causes}
        drafts = self._keep(self._encoded(drafts), kept, causes)
        unread = {id: draft for id, draft in drafts.items() if draft.unread and draft.outcome.done}
        reading = {self.readers.submit(self._read, draft): id for id, draft in unread.items()}
        try:
            for read in as_completed(reading):  # kept one by one: what was paid for is not lost with its batch
                id = reading[read]
                before = {id: drafts[id].target if drafts[id].outcome is Outcome.INDEXED else kept[id]}
                drafts |= self._keep(self._encoded({id: read.result()}), before, causes)
        finally:
            for read in reading:
                read.cancel()  # where keeping one failed, those that wait are not paid for
        return {id: draft.outcome for id, draft in drafts.items()}

    def _draft(self, id: Id, item: Item | None, trust: int | None, kept: Stored | None) -> _Draft:
        """What should be kept, as far as it can be said without a model."""
        namespace, name = parts(id)
        if item is None:
            gone = Profile(namespace=namespace, name=name, status=Status.DELETED).sealed()
            return _Draft(Outcome.DELETED, Stored(gone))
        try:
            return self._accepted(_parsed(id, item, kept), trust, kept)
        except RegistrationInvalid as error:
            last_good = kept or Stored(Profile(namespace=namespace, name=name))
            rejected = last_good.profile.model_copy(
                update={"status": Status.REJECTED, "error": fitted(str(error), _LONGEST_ERROR), "trust": trust}
            )
            return _Draft(Outcome.REJECTED, replace(last_good, profile=rejected.sealed()))

    def _accepted(self, registration: Registration, trust: int | None, kept: Stored | None) -> _Draft:
        """What should be kept of a valid registration.

        Raises:
            RegistrationInvalid: it says more than a profile can hold.
        """
        raw, final = self._raw.origin(registration), self._recipe.origin(registration)
        before = kept.profile if kept else None
        if kept and before and (before.origin in (raw, final) or self._enriched_elsewhere(before, registration)):
            made = before.enrichment if before.enriched else None
            profile = profile_of(registration, trust=trust, origin=before.origin, enrichment=made, notes=before.notes)
            fitting(profile, MAX_KEPT_BYTES)
            vector = kept.vector if before.encoder == self._raw.encoder else None
            return _Draft(
                Outcome.INDEXED, self._stored(profile, vector), registration, unread=before.origin == raw != final
            )
        profile = fitting(profile_of(registration, trust=trust, origin=raw))
        return _Draft(Outcome.INDEXED, Stored(profile), registration, unread=raw != final)

    def _enriched_elsewhere(self, before: Profile, registration: Registration) -> bool:
        """Whether a writer that this process does not have has read this very text: its work is not undone."""
        return self.writer is None and before.enriched and same_text(before.origin, registration)

    def _stored(self, profile: Profile, vector: Vector | None) -> Stored:
        """A profile with its vector, saying whose that is."""
        maker = self._raw.encoder if vector is not None else ""
        return Stored(profile.model_copy(update={"encoder": maker}).sealed(), vector)

    @property
    def _recipe(self) -> Recipe:
        """What makes a finished profile."""
        return replace(
            self._raw,
            writer=self.writer.name if self.writer else "",
            prompt=self.writer.prompt if self.writer else "",
        )

    @property
    def _raw(self) -> Recipe:
        """What makes a raw one: the encoder alone."""
        return Recipe(encoder=self.encoder.name if self.encoder else "")

    def _read(self, draft: _Draft) -> _Draft:
        """The draft as the writer improves it; a useless reply leaves the raw profile, with the reason."""
        if not (self.writer and draft.registration):
            return draft
        raw = draft.target.profile
        try:
            better = self._improved(draft.registration, self.writer, raw.trust)
        except ReplyUnusable as error:
            origin = self._recipe.origin(draft.registration)
            noted = raw.model_copy(update={"origin": origin, "notes": (f"not enriched: {error}",)}).sealed()
            return replace(draft, outcome=Outcome.INDEXED, target=replace(draft.target, profile=noted))
        except DependencyFailed as error:
            self.waits(raw.id, error)
            return replace(draft, outcome=Outcome.DEGRADED)
        return replace(draft, outcome=Outcome.INDEXED, target=Stored(better))

    def _improved(self, registration: Registration, writer: Writer, trust: int | None) -> Profile:
        """The profile with what the writer says, as far as the registration bears it out.

        Raises:
            ReplyUnusable: it is nonsense, or more than a row holds.
        """
        written = writer.describe(registration)
        true = grounded(written.enrichment, registration)
        profile = profile_of(
            registration,
            trust=trust,
            origin=self._recipe.origin(registration),
            enrichment=with_owners_words(true.enrichment, registration),
            notes=(*written.notes, *true.notes),
        )
        try:
            return fitting(profile, MAX_KEPT_BYTES)
        except RegistrationInvalid as error:
            raise ReplyUnusable(f"what was written {error}") from error

    def stale(self, ids: Sequence[Id]) -> list[Id]:
        """Which of these another writer, prompt or encoder has described or encoded; those that failed are, too.

        Raises:
            DependencyFailed: a store did not answer.
        """
        items, kept = self.registry.get(ids), self.profiles.get(ids)
        return [id for id in ids if id in items and self._is_stale(id, items[id], kept.get(id))]

    def _is_stale(self, id: Id, item: Item, kept: Stored | None) -> bool:
        try:
            registration = _parsed(id, item, kept)
        except RegistrationInvalid:
            return kept is None
        if kept is None or kept.profile.status is not Status.ACTIVE:
            return True
        before = kept.profile
        current = before.origin == self._recipe.origin(registration) or self._enriched_elsewhere(before, registration)
        return not current or before.encoder != self._raw.encoder

    def preview(self, registration: Registration) -> tuple[Profile, Profile]:
        """The profile of a registration as its owner wrote it and as the writer would; nothing is kept.

        Raises:
            DependencyFailed: there is no writer, or it did not answer.
            ReplyUnusable: it answered nonsense.
        """
        if self.writer is None:
            raise DependencyFailed(NO_WRITER)
        raw = profile_of(registration, trust=None, origin=self._raw.origin(registration))
        return raw, self._improved(registration, self.writer, None)

    def _encoded(self, drafts: Mapping[Id, _Draft]) -> dict[Id, _Draft]:
        """The drafts with a vector wherever one is missing; where the encoder fails they stay lexically findable."""
        encoded = dict(drafts)
        missing = [id for id, draft in drafts.items() if draft.registration and draft.target.vector is None]
        if not self.encoder or not missing:
            return encoded
        try:
            vectors = self.encoder.encode_documents([embedded_text(drafts[id].target.profile) for id in missing])
        except DependencyFailed as error:
            self.waits(missing[0], error)
            return encoded | {id: replace(drafts[id], outcome=Outcome.DEGRADED) for id in missing}
        for id, vector in zip(missing, vectors, strict=True):
            if vector is None:
                encoded[id] = replace(drafts[id], outcome=Outcome.DEGRADED)
            else:
                encoded[id] = replace(drafts[id], target=self._stored(drafts[id].target.profile, vector))
        return encoded

    def _keep(
        self, drafts: Mapping[Id, _Draft], kept: Mapping[Id, Stored], causes: Mapping[Id, Cause]
    ) -> dict[Id, _Draft]:
        """Save what changed, then index it; what was saved before and missed the index is indexed again."""
        fresh = {
            id: _next_revision(draft.target, kept.get(id), causes[id])
            for id, draft in drafts.items()
            if not _same(draft.target, kept.get(id))
        }
        unannounced = self._unannounced([entry.profile for entry in fresh.values()])
        fresh = {id: entry for id, entry in fresh.items() if id not in unannounced}
        late = self.profiles.save(list(fresh.values())) if fresh else ()
        missed = [
            kept[id] for id in drafts if id in kept and _missed_by_index(kept[id]) and id not in {*fresh, *unannounced}
        ]
        entries = [entry for id, entry in fresh.items() if id not in late] + missed
        if entries:
            self.index.put(entries)
            self.profiles.mark_indexed({entry.profile.id: entry.profile.rev for entry in entries})
        written = {entry.profile.id: _indexed(entry) for entry in entries}
        told = {id: _told(draft, id, written=written, late=late) for id, draft in drafts.items()}
        return told | {id: replace(drafts[id], outcome=Outcome.DEGRADED) for id in unannounced}

    def _unannounced(self, fresh: Sequence[Profile]) -> Collection[Id]:
        """Those of the new revisions that are rejections and could not be announced: they have to come again."""
        rejected = [profile for profile in fresh if profile.status is Status.REJECTED]
        try:
            if rejected:
                self.rejects(rejected)
        except DependencyFailed as error:
            self.waits(rejected[0].id, error)
            return [profile.id for profile in rejected]
        return ()


def _parsed(id: Id, item: Item, kept: Stored | None) -> Registration:
    """The registration of an item, if it is one, under its own id and of the kind it always was."""
    registration = Registration.parse(item)
    if registration.id != id:
        raise RegistrationInvalid([Fault("name", "must not begin or end with white space; nor must the namespace")])
    before = kept.profile.kind if kept else None
    if before and registration.kind is not before:
        raise KindConflict(id)
    return registration


def _same(target: Stored, kept: Stored | None) -> bool:
    """Whether nothing would change: equal content and a vector on both sides or on none."""
    if kept is None:
        return target.profile.status is Status.DELETED
    return target.profile.content == kept.profile.content and (target.vector is None) == (kept.vector is None)


def _indexed(entry: Stored) -> Stored:
    """The entry as it stands now that the index has acknowledged it."""
    return replace(entry, profile=entry.profile.model_copy(update={"indexed_rev": entry.profile.rev}))


def _missed_by_index(kept: Stored) -> bool:
    return kept.profile.indexed_rev != kept.profile.rev


def _next_revision(target: Stored, kept: Stored | None, cause: Cause) -> Stored:
    before = kept.profile if kept else None
    numbered = target.profile.model_copy(
        update={
            "rev": before.rev + 1 if before else 1,
            "indexed_rev": before.indexed_rev if before else 0,
            "cause": cause,
        }
    )
    return replace(target, profile=numbered)


def _told(draft: _Draft, id: Id, *, written: Mapping[Id, Stored], late: Collection[Id]) -> _Draft:
    """The draft with what became of it; what was written stands as its target, with its revision."""
    if id in late:
        return replace(draft, outcome=Outcome.SUPERSEDED)
    if id in written:
        return replace(draft, target=written[id])
    return replace(draft, outcome=Outcome.UNCHANGED) if draft.outcome.done else draft
