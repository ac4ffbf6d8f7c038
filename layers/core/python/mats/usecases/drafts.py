"""Drafts: the profiles that changed capabilities are to have, and the models that make them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mats.domain.capability.capability import Id, parts
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, Fault, KindConflict, RegistrationInvalid, ReplyUnusable
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned
from mats.domain.profile.grounding import SAYS_NOTHING, ground, says_nothing
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.origin import Recipe, fingerprint, same_text
from mats.domain.profile.profile import (
    ChangeResult,
    Enrichment,
    Profile,
    Status,
    check_profile_size,
    is_sparse,
    profile_of,
    tombstone,
    with_owners_words,
)
from mats.domain.prompts.prompt import Written
from mats.domain.search.lookups import Vector
from mats.ports import NO_LABELS, Encoder, Item, Labels, Stored, Writer
from mats.usecases.models import Probe, ProbedEncoder, WrappedWriter

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
    review_new: bool = False  # What is new waits for an operator, unless they have rated its namespace

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

        Raises DependencyFailed: there is no writer, or it did not answer; ReplyUnusable: its reply is malformed, or the
        profile too large.
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
            risk=written.risk,
            notes=(*written.notes, *confirmed.notes),
        )
        try:
            return check_profile_size(profile)
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

        Raises DependencyFailed: the encoder failed for all.
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
        return self.registration is not None or (bool(profile.held_now) and profile.findable)

    @property
    def result(self) -> ChangeResult:
        if self.problem or not self.saved:
            return self.problem or ChangeResult.UNCHANGED
        status = self.target.profile.status
        return ChangeResult.INDEXED if status is Status.ACTIVE else ChangeResult(status)


def make_draft(id: Id, item: Item | None, assigned: Assigned, kept: Stored | None, run: Pass) -> Draft:
    """The draft of one capability before any model is called."""
    if item is None:
        return Draft(target=Stored(tombstone(id)))
    drafted = None if run.maker.writer else run.drafted
    try:
        registration = parse_item(id, item, kept)
        if kept and drafted and drafted.pop(id, None) == _hash(item, assigned, kept.profile):
            return Draft(target=kept, registration=registration)
        draft = _accept(registration, assigned, kept, run.maker)
    except RegistrationInvalid as error:
        namespace, name = parts(id)
        last_good = kept or Stored(Profile(namespace=namespace, name=name))
        rejected = last_good.profile.with_assigned(assigned).reject(str(error))
        return Draft(target=replace(last_good, profile=rejected))
    if drafted is not None and not run.vectors:  # one with vectors is the last
        drafted[id] = _hash(item, assigned, draft.target.profile)
    return draft


def _hash(item: Item, assigned: Assigned, profile: Profile) -> int:
    return hash((fingerprint([item, assigned]), profile.content))


def _accept(registration: Registration, assigned: Assigned, kept: Stored | None, maker: ProfileMaker) -> Draft:
    """The draft of a valid registration; an existing enrichment of the same text is reused.

    Raises RegistrationInvalid: the profile would be too large.
    """
    raw, final = maker.origins(registration)
    before = kept.profile if kept else None
    if kept and before and (before.origin in (raw, final) or maker.is_enriched_elsewhere(before, registration)):
        profile = check_profile_size(remake(registration, assigned, before))
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
    return profile_of(
        registration,
        assigned=assigned,
        origin=before.origin,
        enrichment=before.enrichment if before.enriched else None,
        risk=before.risk,
        notes=before.notes,
    )


def parse_item(id: Id, item: Item, kept: Stored | None) -> Registration:
    """Parse an item; its id must be `id`, and its kind must not change.

    Raises RegistrationInvalid: with every fault.
    """
    registration = Registration.parse(item)
    if registration.id != id:
        raise RegistrationInvalid([Fault("name", "must not begin or end with white space; nor must the namespace")])
    before = kept.profile.kind if kept else None
    if before and registration.kind is not before:
        raise KindConflict(id)
    return registration
