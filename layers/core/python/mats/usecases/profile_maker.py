"""Makes profiles of registrations, raw or enriched, and their vectors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, RegistrationInvalid, ReplyUnusable
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.origin import Recipe, same_text
from mats.domain.profile.profile import (
    MAX_KEPT_BYTES,
    Enrichment,
    Profile,
    check_profile_size,
    profile_of,
    with_owners_words,
)
from mats.domain.trust.grounding import SAYS_NOTHING, ground, says_nothing
from mats.ports import NO_LABELS, Encoder, Labels, Stored, Vector, Writer, Written
from mats.usecases.model_switch import SwitchedModel
from mats.usecases.refusals import ProbedEncoder, ProbedWriter

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
