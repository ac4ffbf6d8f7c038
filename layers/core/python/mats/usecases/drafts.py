"""Drafts: the profile that a changed capability is to have, with the models' part, before it is saved."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from mats.domain.capability.capability import Id, parts
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, Fault, KindConflict, ModelRefused, RegistrationInvalid, ReplyUnusable
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.origin import Recipe, fingerprint, same_text
from mats.domain.profile.profile import (
    MAX_KEPT_BYTES,
    ChangeResult,
    Enrichment,
    Profile,
    Refusal,
    Status,
    check_profile_size,
    profile_of,
    with_owners_words,
)
from mats.domain.text.fence import truncate_json
from mats.domain.trust.grounding import SAYS_NOTHING, ground, says_nothing
from mats.ports import NO_LABELS, Encoder, Item, Labels, Stored, Vector, Writer, Written
from mats.usecases.models import ProbedEncoder, ProbedWriter, SwitchedModel

NO_WRITER = (
    "there is no writer: set MATS_LLM_URL and MATS_LLM_MODEL, or MATS_BEDROCK=1 and AWS credentials; and "
    "MATS_WRITER_MODEL to a model"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileMaker:
    """The available encoder and writer, and the origins of the profiles they make.

    `switch`, if there is one, may replace the configured writer; `with_current` asks it once for a batch.
    """

    encoder: Encoder | None
    writer: Writer | None
    switch: SwitchedModel[Writer] | None = None
    calls_encoder: bool = True
    """False: vectors of the encoder are kept, but new ones are left to a later run."""
    drafted: dict[Id, int] | None = None
    """Of each profile drafted in several runs over the same changes: a hash of its input and its content."""

    def without_writer(self) -> "ProfileMaker":
        """The maker of raw profiles and their vectors."""
        return replace(self, writer=None, switch=None)

    def with_memory(self) -> "ProfileMaker":
        """The maker for several runs over the same changes: a later one takes over what an earlier one has drafted."""
        return replace(self, drafted={})

    def without_models(self) -> "ProfileMaker":
        """The maker of raw profiles without vectors."""
        return replace(self.without_writer(), calls_encoder=False)

    def with_current(self) -> "ProfileMaker":
        """The same with the writer to call now."""
        return replace(self, writer=self.switch(self.writer), switch=None) if self.switch else self

    def with_probe(self) -> "ProfileMaker":
        """The maker for one run over many capabilities: a model that has refused once is not called again."""
        maker = self.with_current()
        return ProfileMaker(
            encoder=ProbedEncoder(maker.encoder) if maker.encoder else None,
            writer=ProbedWriter(maker.writer) if maker.writer else None,
        )

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
        """The `origin` of the raw and of the finished profile; equal if there is no writer."""
        raw = self.raw_recipe.origin(registration)
        return raw, raw if self.writer is None else self.recipe.origin(registration)

    def raw(self, registration: Registration, assigned: Assigned = NOTHING_ASSIGNED) -> Profile:
        """The raw profile of a registration."""
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
        """Whether this process has no writer, but another enriched the same text; that enrichment is kept."""
        return self.writer is None and before.enriched and same_text(before.origin, registration)

    def is_stale(self, before: Profile, registration: Registration) -> bool:
        """Whether another writer, prompt or encoder made this profile."""
        if before.encoder != self.raw_recipe.encoder:
            return True
        current = before.origin == self.recipe.origin(registration)
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


_MAX_ERROR_BYTES = 16_000
"""Limit of the error message: an item can have thousands of faults, and the row must still fit."""

OnWait = Callable[[Id, DependencyFailed], None]
"""Called with the error of a model that a capability waits for, or is refused by; from several threads."""

_Vectors: TypeAlias = Sequence[Vector | None]
TimeLimit = Callable[[Callable[[], _Vectors]], _Vectors]
"""Runs a call of the encoder; raises OutOfTime where it takes too long."""

WRITER, ENCODER = "writer", "encoder"
"""The roles in `Refusal`."""


@dataclass(frozen=True, slots=True)
class ProfileDraft:
    """The intended revision of a capability, and its outcome so far."""

    outcome: ChangeResult
    target: Stored
    registration: Registration | None = None
    needs_writer: bool = False


def make_draft(id: Id, item: Item | None, assigned: Assigned, kept: Stored | None, maker: ProfileMaker) -> ProfileDraft:
    """The draft of one capability before any model is called."""
    namespace, name = parts(id)
    if item is None:
        tombstone = Profile(namespace=namespace, name=name, status=Status.DELETED).seal()
        return ProfileDraft(ChangeResult.DELETED, Stored(tombstone))
    try:
        registration = parse_item(id, item, kept)
        if maker.drafted is None or maker.writer:
            return _accept(registration, assigned, kept, maker)
        key = fingerprint([item, assigned])
        if kept and maker.drafted.pop(id, None) == hash((key, kept.profile.content)):
            return ProfileDraft(ChangeResult.INDEXED, kept, registration)
        draft = _accept(registration, assigned, kept, maker)
        maker.drafted[id] = hash((key, draft.target.profile.content))
        return draft
    except RegistrationInvalid as error:
        last_good = kept or Stored(Profile(namespace=namespace, name=name))
        fault = {"status": Status.REJECTED, "error": truncate_json(str(error), _MAX_ERROR_BYTES)}
        rejected = last_good.profile.with_assigned(assigned).model_copy(update=fault)
        return ProfileDraft(ChangeResult.REJECTED, replace(last_good, profile=rejected.seal()))


def _accept(registration: Registration, assigned: Assigned, kept: Stored | None, maker: ProfileMaker) -> ProfileDraft:
    """The draft of a valid registration; an existing enrichment of the same text is reused.

    Raises:
        RegistrationInvalid: the profile would be too large.
    """
    raw, final = maker.origins(registration)
    before = kept.profile if kept else None
    if kept and before and (before.origin in (raw, final) or maker.is_enriched_elsewhere(before, registration)):
        enrichment = before.enrichment if before.enriched else None
        profile = profile_of(
            registration, assigned=assigned, origin=before.origin, enrichment=enrichment, notes=before.notes
        )
        check_profile_size(profile, MAX_KEPT_BYTES)
        vector = kept.vector if before.encoder == maker.raw_recipe.encoder else None
        needs_writer, needs_vector = before.origin == raw != final, bool(maker.encoder) and vector is None
        settled = [role for role, pending in ((WRITER, needs_writer), (ENCODER, needs_vector)) if not pending]
        marked = profile.model_copy(update={"refused": before.refused}).without_refusal(*settled)
        target = maker.to_stored(marked, vector)
        return ProfileDraft(ChangeResult.INDEXED, target, registration, needs_writer=needs_writer)
    made = check_profile_size(profile_of(registration, assigned=assigned, origin=raw))
    return ProfileDraft(ChangeResult.INDEXED, Stored(made), registration, raw != final)


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


def describe(draft: ProfileDraft, maker: ProfileMaker, on_wait: OnWait, labels: Labels = NO_LABELS) -> ProfileDraft:
    """The draft with the writer's enrichment; after an unusable reply, the raw profile with the reason."""
    if draft.registration is None:
        return draft
    raw = draft.target.profile
    try:
        better = maker.describe(draft.registration, raw.assignment, labels)
    except ReplyUnusable as error:
        origin = maker.recipe.origin(draft.registration)
        noted = (
            raw.without_refusal(WRITER)
            .model_copy(update={"origin": origin, "notes": (f"not enriched: {error}",)})
            .seal()
        )
        return replace(draft, outcome=ChangeResult.INDEXED, target=replace(draft.target, profile=noted))
    except ModelRefused as error:
        on_wait(raw.id, error)
        return _mark_refused(draft, WRITER, error)
    except DependencyFailed as error:
        on_wait(raw.id, error)
        return replace(draft, outcome=ChangeResult.DEGRADED)
    return replace(draft, outcome=ChangeResult.INDEXED, target=Stored(better))


def _mark_refused(draft: ProfileDraft, role: str, error: ModelRefused) -> ProfileDraft:
    """The draft as it is, marked: the change is done until an operator has acted."""
    profile = draft.target.profile.with_refusal(Refusal(role=role, model=error.model, cause=error.cause))
    return replace(draft, outcome=ChangeResult.REFUSED, target=replace(draft.target, profile=profile))


def encode(
    drafts: Mapping[Id, ProfileDraft], maker: ProfileMaker, on_wait: OnWait, limit: TimeLimit
) -> dict[Id, ProfileDraft]:
    """The drafts with missing vectors added; if the encoder fails or is late, they stay lexically findable."""
    encoded = dict(drafts)
    missing = [id for id, draft in drafts.items() if draft.registration and draft.target.vector is None]
    if not maker.encoder or not maker.calls_encoder or not missing:
        return encoded
    try:
        vectors = limit(lambda: maker.encode([drafts[id].target.profile for id in missing]))
    except ModelRefused as error:
        on_wait(missing[0], error)
        return encoded | {id: _mark_refused(drafts[id], ENCODER, error) for id in missing}
    except DependencyFailed as error:
        on_wait(missing[0], error)
        return encoded | {id: replace(drafts[id], outcome=ChangeResult.DEGRADED) for id in missing}
    for id, vector in zip(missing, vectors, strict=True):
        if vector is None:
            encoded[id] = replace(drafts[id], outcome=ChangeResult.DEGRADED)
        else:
            profile = drafts[id].target.profile.without_refusal(ENCODER)
            encoded[id] = replace(drafts[id], target=maker.to_stored(profile, vector))
    return encoded
