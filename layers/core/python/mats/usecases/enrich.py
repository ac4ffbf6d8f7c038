"""Keep profiles and index in step with the registry: once per registration or change, never per query.

Events carry keys only, so their order and number do not matter: the latest state is read here. A revision is saved
first and indexed second, and `indexed_rev` records that both happened; after a crash between the two, redelivery of the
event completes the second, and an older run can never overwrite a newer one.

A draft is the profile that a changed capability is to have; one that an operator has to approve first waits.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, wait
from dataclasses import dataclass, replace
from operator import mul
from typing import TypeAlias

from mats.domain.capability.capability import Id, parts
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, Fault, KindConflict, ModelRefused, RegistrationInvalid, ReplyUnusable
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned, Policy
from mats.domain.profile.changes import (
    WORDING,
    ChangeClass,
    Reason,
    compare,
    contract_of,
    is_renamed,
    own_domain,
    worst,
)
from mats.domain.profile.grounding import SAYS_NOTHING, ground, says_nothing
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.origin import NOT_TEXT, Recipe, fingerprint, same_text
from mats.domain.profile.profile import (
    MAX_KEPT_BYTES,
    Cause,
    ChangeResult,
    Contract,
    Enrichment,
    Held,
    Profile,
    Refusal,
    Status,
    check_profile_size,
    is_sparse,
    profile_of,
    tombstone,
    with_owners_words,
)
from mats.domain.profile.wording import is_same_work, sample_text
from mats.domain.prompts.prompt import Written
from mats.domain.search.lookups import Vector
from mats.domain.text.fence import truncate_json
from mats.ports import (
    NO_LABELS,
    Change,
    Encoder,
    Item,
    Labels,
    ProfileStore,
    Registry,
    SearchIndex,
    Stored,
    TrustBook,
    Writer,
)
from mats.usecases.deadline import NO_DEADLINE, READ_S, SAVE_S, Deadline
from mats.usecases.models import Probe, ProbedEncoder, WrappedWriter

_MAX_ERROR_BYTES = 16_000
"""Limit of the error message: an item can have thousands of faults, and the row must still fit."""

OnWait = Callable[[Id, DependencyFailed], None]
"""Called with the error of a model that a capability waits for, or is refused by; from several threads."""

Vectors: TypeAlias = Sequence[Vector | None]
TimeLimit = Callable[[Callable[[], Vectors]], Vectors]
"""Runs a call of the encoder; raises OutOfTime where it takes too long."""

NOT_ENRICHED = "not enriched: "
"""How the note begins on a profile that stays raw, because no reply of the writer could be used."""
WRITER, ENCODER = "writer", "encoder"  # The roles in `Refusal`


NO_WRITER = (
    "there is no writer: set MATS_LLM_URL and MATS_LLM_MODEL, or MATS_BEDROCK=1 and AWS credentials; and "
    "MATS_WRITER_MODEL to a model"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileMaker:
    """Makes profiles of registrations, raw or enriched, and their vectors, with an encoder and a writer."""

    encoder: Encoder | None
    writer: Writer | None
    sparse_only: bool = False
    """The writer describes sparse registrations only; what any wrote about the same text of others is kept."""

    def begin(self, *, probe: bool = False) -> "Pass":
        """A pass; with `probe`, a model that has refused once is not called again."""
        encoder, writer = self.encoder, self.writer
        if probe:
            encoder, writer = encoder and ProbedEncoder(encoder), writer and WrappedWriter(writer, Probe().call)
        return Pass(maker=replace(self, encoder=encoder, writer=writer))

    @property
    def raw_recipe(self) -> Recipe:
        """The recipe of a raw profile: the encoder alone."""
        return Recipe(encoder=self.encoder.name if self.encoder else "")

    @property
    def recipe(self) -> Recipe:
        """The recipe of a finished profile."""
        if self.writer is None:
            return self.raw_recipe
        return replace(self.raw_recipe, writer=self.writer.name, prompt=self.writer.prompt)

    def origins(self, registration: Registration) -> tuple[str, str]:
        """The `origin` of the raw and of the finished profile; equal if no writer is to describe it."""
        raw = self.raw_recipe.origin(registration)
        return raw, self.recipe.origin(registration) if self.describes(registration) else raw

    def describes(self, registration: Registration) -> bool:
        return self.writer is not None and (not self.sparse_only or is_sparse(registration))

    def raw(self, registration: Registration, assigned: Assigned = NOTHING_ASSIGNED) -> Profile:
        return profile_of(registration, assigned=assigned, origin=self.raw_recipe.origin(registration))

    def describe(
        self, registration: Registration, assigned: Assigned = NOTHING_ASSIGNED, labels: Labels = NO_LABELS
    ) -> Profile:
        """The profile with the grounded part of the writer's five fields. `labels` are for the log of the call.

        The writer is not asked about a registration that says nothing: there would be no grounds for its text.

        Raises:
            DependencyFailed: there is no writer, or it did not answer.
            ReplyUnusable: its reply is malformed, or the profile too large.
        """
        if self.writer is None:
            raise DependencyFailed(NO_WRITER)
        if says_nothing(registration):
            written = Written(enrichment=Enrichment(), notes=(f"not described: {SAYS_NOTHING}",))
        else:
            written = self.writer.describe(registration, labels)
        confirmed = ground(written.enrichment, registration)
        profile = profile_of(
            registration,
            assigned=assigned,
            origin=self.recipe.origin(registration),
            enrichment=with_owners_words(confirmed.enrichment, registration),
            notes=(*written.notes, *confirmed.notes),
        )
        try:
            return check_profile_size(profile, MAX_KEPT_BYTES)
        except RegistrationInvalid as error:
            raise ReplyUnusable(f"the enriched profile {error}") from error

    def is_enriched_elsewhere(self, before: Profile, registration: Registration) -> bool:
        """True if no writer is to describe it here, but one has enriched the same text; that enrichment is kept."""
        return not self.describes(registration) and before.enriched and same_text(before.origin, registration)

    def is_stale(self, before: Profile, registration: Registration) -> bool:
        """True if another writer, prompt or encoder made this profile."""
        if before.encoder != self.raw_recipe.encoder:
            return True
        current = before.origin == self.origins(registration)[1]
        return not current and not self.is_enriched_elsewhere(before, registration)

    def to_stored(self, profile: Profile, vector: Vector | None) -> Stored:
        """A profile with its vector and the name of the encoder."""
        encoder = self.raw_recipe.encoder if vector is not None else ""
        return Stored(profile.model_copy(update={"encoder": encoder}).seal(), vector)

    def encode(self, profiles: Sequence[Profile]) -> Sequence[Vector | None]:
        """The vectors of profiles, in order; None where the encoder failed.

        Raises:
            DependencyFailed: the encoder failed for all.
        """
        if self.encoder is None:
            return [None] * len(profiles)
        return self.encoder.encode_documents([embedded_text(profile) for profile in profiles])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One run over changes: the models it calls, what it leaves to a later run, what it takes over from an earlier."""

    maker: ProfileMaker
    vectors: bool = True  # False: vectors of the encoder are kept, but new ones are left to a later run
    later: ProfileMaker | None = None
    """The models of a later run; what they would change is saved and indexed, and `postponed`."""
    drafted: dict[Id, int] | None = None
    """Drafts of an earlier run over the same changes, which are not made again: by id, a hash of what it was made of
    and became. None: there is one run only."""


_RESULTS = {
    Status.ACTIVE: ChangeResult.INDEXED,
    Status.REJECTED: ChangeResult.REJECTED,
    Status.HELD: ChangeResult.HELD,
    Status.DELETED: ChangeResult.DELETED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The intended revision of a capability."""

    target: Stored
    registration: Registration | None = None  # None if it is removed or rejected
    assigned: Assigned = NOTHING_ASSIGNED
    needs_writer: bool = False
    problem: ChangeResult | None = None  # Why the change is not done, if it is not
    saved: bool = False  # The revision was saved and indexed

    @property
    def is_encoded(self) -> bool:
        """True if its text needs a vector; a rejected one keeps the vector it has."""
        profile = self.target.profile
        return self.registration is not None or (profile.status is Status.HELD and profile.findable)

    @property
    def result(self) -> ChangeResult:
        return self.problem or (_RESULTS[self.target.profile.status] if self.saved else ChangeResult.UNCHANGED)


def make_draft(id: Id, item: Item | None, assigned: Assigned, kept: Stored | None, run: Pass) -> Draft:
    """The draft of one capability before any model is called."""
    if item is None:
        return Draft(target=Stored(tombstone(id)))
    drafted = None if run.maker.writer else run.drafted
    try:
        registration = parse_item(id, item, kept)
        if kept and drafted is not None and drafted.pop(id, None) == _hash(item, assigned, kept.profile):
            return Draft(target=kept, registration=registration)
        draft = _accept(registration, assigned, kept, run.maker)
    except RegistrationInvalid as error:
        namespace, name = parts(id)
        last_good = kept or Stored(Profile(namespace=namespace, name=name))
        fault = {"status": Status.REJECTED, "error": truncate_json(str(error), _MAX_ERROR_BYTES), "held": None}
        rejected = last_good.profile.with_assigned(assigned).model_copy(update=fault)
        return Draft(target=replace(last_good, profile=rejected.seal()))
    if drafted is not None:
        drafted[id] = _hash(item, assigned, draft.target.profile)
    return draft


def _hash(item: Item, assigned: Assigned, profile: Profile) -> int:
    return hash((fingerprint([item, assigned]), profile.content))


def _accept(registration: Registration, assigned: Assigned, kept: Stored | None, maker: ProfileMaker) -> Draft:
    """The draft of a valid registration; an existing enrichment of the same text is reused.

    Raises:
        RegistrationInvalid: the profile would be too large.
    """
    raw, final = maker.origins(registration)
    before = kept.profile if kept else None
    if kept and before and (before.origin in (raw, final) or maker.is_enriched_elsewhere(before, registration)):
        profile = check_profile_size(remake(registration, assigned, before), MAX_KEPT_BYTES)
        vector = kept.vector if before.encoder == maker.raw_recipe.encoder else None
        needs_writer, needs_vector = before.origin == raw != final, bool(maker.encoder) and vector is None
        settled = [role for role, pending in ((WRITER, needs_writer), (ENCODER, needs_vector)) if not pending]
        marked = profile.model_copy(update={"refused": before.refused}).without_refusal(*settled)
        target = maker.to_stored(marked, vector)
        return Draft(target=target, registration=registration, assigned=assigned, needs_writer=needs_writer)
    made = check_profile_size(profile_of(registration, assigned=assigned, origin=raw))
    return Draft(target=Stored(made), registration=registration, assigned=assigned, needs_writer=raw != final)


def remake(registration: Registration, assigned: Assigned, before: Profile) -> Profile:
    """The profile of a registration with what models once wrote about the same text."""
    enrichment = before.enrichment if before.enriched else None
    return profile_of(registration, assigned=assigned, origin=before.origin, enrichment=enrichment, notes=before.notes)


def parse_item(id: Id, item: Item, kept: Stored | None) -> Registration:
    """Parse an item; its id must be `id`, and its kind must not change.

    Raises:
        RegistrationInvalid: with every fault.
    """
    registration = Registration.parse(item)
    if registration.id != id:
        raise RegistrationInvalid([Fault("name", "must not begin or end with white space; nor must the namespace")])
    before = kept.profile.kind if kept else None
    if before and registration.kind is not before:
        raise KindConflict(id)
    return registration


_NEW = (Reason(ChangeClass.HARMLESS, "it is new"),)


def is_made_from(profile: Profile, draft: Draft) -> bool:
    """True if a profile has the content of the draft's registration."""
    made, registration = draft.target.profile, draft.registration
    same = registration is not None and profile.findable and same_text(profile.origin, registration)
    return same and all(getattr(profile, name) == getattr(made, name) for name in (*NOT_TEXT, "invocation", "effects"))


@dataclass(frozen=True, slots=True)
class _Case:
    """A draft with what was approved, None for a new entry, and what is to take its place."""

    draft: Draft
    last: Stored | None
    assigned: Assigned
    approved: Contract | None = None
    after: Contract | None = None

    @property
    def digest(self) -> str:
        return fingerprint(self.draft.registration.item()) if self.draft.registration else ""

    def decide(self, similarity: float | None, cause: Cause) -> Draft:
        """The draft, or what is to be saved while its registration waits."""
        reasons: Sequence[Reason] = _NEW
        if self.approved and self.after:
            own = own_domain(self.draft.target.profile.namespace)
            reasons = compare(self.approved, self.after, similarity, own=own) or (WORDING,)
        rejected = self.digest == self.assigned.rejected
        reviewed = self.assigned.policy is Policy.REVIEW
        if rejected or reviewed or worst(reasons) is ChangeClass.DANGEROUS:
            return self._hold(reasons, cause, rejected=rejected)
        return _with_approved(self.draft, self.approved if self.approved != self.after else None)

    def _hold(self, reasons: Sequence[Reason], cause: Cause, *, rejected: bool) -> Draft:
        profile = self.draft.target.profile
        shown = self.last
        if shown is None or not shown.profile.findable or (rejected and is_made_from(shown.profile, self.draft)):
            shown = Stored(Profile(namespace=profile.namespace, name=profile.name, approved=self.approved))
        before = self.last.profile.held if self.last else None
        held = Held(
            digest=self.digest,
            changes=tuple(map(str, reasons)),
            since=before.since if before and before.digest == self.digest else cause.time,
            approved=_time_of(shown.profile),
            rejected=rejected,
        )
        waiting = {"status": Status.HELD, "error": "", "held": held}
        marked = shown.profile.with_assigned(self.assigned).model_copy(update=waiting)
        return Draft(target=replace(shown, profile=marked.seal()))


def _with_approved(draft: Draft, approved: Contract | None) -> Draft:
    profile = draft.target.profile
    if profile.approved == approved:
        return draft
    return replace(
        draft, target=replace(draft.target, profile=profile.model_copy(update={"approved": approved}).seal())
    )


def _time_of(shown: Profile) -> str:
    if not shown.findable:
        return ""
    return shown.held.approved if shown.held else shown.cause.time if shown.cause else ""


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides which drafts of a batch wait. The encoder is asked only where a text changed and nothing else decides."""

    profiles: ProfileStore
    run: Pass
    causes: Mapping[Id, Cause]
    limit: TimeLimit | None = None
    """None: the encoder is not asked at all, and what waits for this decision already goes on waiting."""
    on_wait: OnWait = lambda id, error: None

    def __call__(
        self, drafts: Mapping[Id, Draft], kept: Mapping[Id, Stored], assigned: Mapping[Id, Assigned]
    ) -> dict[Id, Draft]:
        removed: dict[str, Sequence[Profile]] = {}
        decided = dict(drafts)
        cases: dict[Id, _Case] = {}
        for id, draft in drafts.items():
            if draft.registration is None:
                continue
            one = self._case(draft, kept.get(id), assigned[id], removed)
            if isinstance(one, _Case):
                cases[id] = one
            else:
                decided[id] = one
        unclear = [id for id, case in cases.items() if _is_unclear(case)]
        try:
            similarities = self._similarities([cases[id] for id in unclear])
        except DependencyFailed as error:
            self.on_wait(unclear[0], error)
            similarities = [None] * len(unclear)
        told = dict(zip(unclear, similarities, strict=True))
        for id, case in cases.items():
            held = case.last.profile.held if case.last else None
            if not (self.run.maker.encoder and id in told and told[id] is None):
                decided[id] = case.decide(told.get(id), self.causes[id])
            elif case.last and held and held.digest == case.digest and not self.limit:
                waiting = case.last.profile.with_assigned(case.assigned).seal()
                decided[id] = Draft(target=replace(case.last, profile=waiting))
            else:
                namespace, name = parts(id)
                nothing = Stored(Profile(namespace=namespace, name=name, status=Status.DELETED).seal())
                problem = ChangeResult.DEGRADED if self.run.vectors else ChangeResult.POSTPONED
                decided[id] = Draft(target=case.last or nothing, problem=problem)
        return {id: self._without_stale_vector(draft) for id, draft in decided.items()}

    def _case(
        self, draft: Draft, last: Stored | None, assigned: Assigned, removed: dict[str, Sequence[Profile]]
    ) -> "Draft | _Case":
        """The case that a decision compares; the draft itself, if it needs none."""
        case, made = _Case(draft, last, assigned), draft.target.profile
        gated = assigned.is_rated or assigned.policy is Policy.REVIEW
        if assigned.policy is Policy.OPEN or case.digest == assigned.approved:
            return draft
        rejected = case.digest == assigned.rejected
        if last and not rejected and is_made_from(last.profile, draft):
            return _with_approved(draft, last.profile.approved if gated else None)
        known = last.profile if last and (last.profile.findable or last.profile.approved) else None
        after = None
        if known:
            waits = gated or rejected or not known.findable
        else:
            if made.namespace not in removed:
                removed[made.namespace] = self.profiles.removals(made.namespace)
            if former := removed[made.namespace]:
                after = contract_of(made)
                known = _former(made, after, former)
            waits = known is not None or rejected or assigned.policy is Policy.REVIEW
        if not waits:
            return draft
        approved = (known.approved or contract_of(known)) if known else None
        return replace(case, approved=approved, after=after or contract_of(made))

    def _similarities(self, cases: Sequence[_Case]) -> Sequence[float | None]:
        """As `compare` takes them, where this run encodes texts."""
        encoder = self.run.maker.encoder
        if not cases or not encoder or not self.run.vectors or not self.limit:
            return [None] * len(cases)
        before = [case.approved or Contract() for case in cases]
        after = [case.after.description for case in cases if case.after]
        texts = [*after, *(each.text for each in before), *(each.description or each.text for each in before)]
        vectors, count = self.limit(lambda: encoder.encode_documents(texts)), len(cases)
        return [_nearest(vectors[place::count]) for place in range(count)]

    def _without_stale_vector(self, draft: Draft) -> Draft:
        """A held one is encoded again after a change of the encoder; no registration of it would be."""
        encoder, profile = self.run.maker.raw_recipe.encoder, draft.target.profile
        stale = profile.status is Status.HELD and bool(encoder) and profile.encoder != encoder
        return replace(draft, target=replace(draft.target, vector=None)) if stale else draft


def _nearest(vectors: Sequence[Vector | None]) -> float | None:
    """The largest cosine of the first with one of the others; None if one is missing."""
    found = [vector for vector in vectors if vector is not None]
    if len(found) < len(vectors):
        return None
    return max(float(sum(map(mul, found[0], each))) for each in found[1:])


def _is_unclear(case: _Case) -> bool:
    """True if only the similarity of the texts decides."""
    if not case.approved or not case.after or case.after.description in ("", case.approved.description):
        return False
    decided = case.assigned.policy is Policy.REVIEW or case.digest == case.assigned.rejected
    return not decided and worst(compare(case.approved, case.after)) is not ChangeClass.DANGEROUS


def _former(made: Profile, after: Contract, removed: Sequence[Profile]) -> Profile | None:
    """The rated entry that was removed from the namespace and is registered again, perhaps under another name."""
    rated = [each for each in removed if each.trust is not None or each.provider_verified or each.held]
    same = next((each for each in rated if each.name == made.name), None)
    return same or next((each for each in rated if is_renamed(each.approved or contract_of(each), after)), None)


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
        return replace(fresh, target=Stored(better.model_copy(update={"approved": raw.approved}).seal()))

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
        unannounced = self._announce_rejections([entry.profile for entry in fresh.values()])
        fresh = {id: entry for id, entry in fresh.items() if id not in unannounced}
        late = self.to.profiles.save(list(fresh.values())) if fresh else ()
        missed = [
            kept[id]
            for id in drafts
            if id in kept and not kept[id].profile.is_indexed and id not in {*fresh, *unannounced}
        ]
        entries = [entry for id, entry in fresh.items() if id not in late] + missed
        if entries:
            self.to.index.put(entries)
            self.to.profiles.mark_indexed({entry.profile.id: entry.profile.rev for entry in entries})
        saved = {
            entry.profile.id: replace(
                entry, profile=entry.profile.model_copy(update={"indexed_rev": entry.profile.rev})
            )
            for entry in entries
        }
        current = {**kept, **saved}
        results = {
            id: replace(draft, target=current.get(id, draft.target), saved=id in saved) for id, draft in drafts.items()
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
    """The attributes that the sample of a text depends on."""
    return profile.name, profile.source, profile.tags, profile.enrichment, profile.enriched, profile.owner_examples
