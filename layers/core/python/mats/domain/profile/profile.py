"""Profiles: the five fields and everything else that is indexed or returned."""

import json
import math
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.capability.capability import Id, Kind, Lifecycle, capability_id, parts
from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault, RegistrationInvalid
from mats.domain.profile.assignment import NOTHING_ASSIGNED, UNRATED_TRUST, Assigned
from mats.domain.profile.origin import fingerprint
from mats.domain.protocols import descriptors
from mats.domain.protocols.catalogue import invocation_of, searchable_part, to_text
from mats.domain.protocols.operation_words import spoken_operation
from mats.domain.protocols.skill import instructions_of
from mats.domain.text.fence import truncate_json
from mats.domain.text.words import clean, clip, content_words, opening, plain, read_parameters, split_identifier

DAY_S = 86_400.0  # Within a day, who registered first says nothing: one import takes some time
_FIELD_LIMIT = 20_000  # Limit in characters of each derived text, so that a profile fits an item
_IDENTIFIERS_LIMIT = 200  # In characters: what a reranker reads of them is less


class _Frozen(BaseModel):
    """Stored across releases: a release ignores attributes that it does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SourceText(_Frozen):
    """The registration's own text in the index: without markup, cleaned and clipped."""

    title: str = ""
    description: str = ""
    parameter_names: str = ""
    identifiers: str = ""  # The `parameter_names` as registered, with commas; empty in profiles of earlier releases
    parameter_text: str = ""
    other: str = ""
    spoken: str = ""  # What an operation does, by its method and path

    @classmethod
    def of(cls, registration: Registration) -> Self:
        descriptor = registration.descriptor
        searched = searchable_part(descriptor)
        about_parameters = {key: value for key, value in searched.items() if key not in descriptors.ABOUT_ITSELF}
        named = read_parameters(registration.input_schema, about_parameters)
        about = read_parameters(descriptors.about_itself(descriptor))
        return cls(
            title=clean(plain(descriptors.title_of(descriptor))),
            description=_clean_and_clip(plain(registration.description)),
            parameter_names=_clean_and_clip(split_identifier(" ".join(named.names))),
            identifiers=clip(clean(", ".join(named.names)), _IDENTIFIERS_LIMIT),
            parameter_text=_clean_and_clip(plain(" ".join(named.texts))),
            other=_clean_and_clip(" ".join((registration.provider, *registration.type_tags, *about.texts))),
            spoken=spoken_operation(registration),
        )


def _clean_and_clip(text: str) -> str:
    return clip(clean(text), _FIELD_LIMIT)


class ChangeResult(StrEnum):
    """Result of enriching a change."""

    INDEXED = "indexed"
    HELD = "held"
    UNCHANGED = "unchanged"
    DELETED = "deleted"
    SUPERSEDED = "superseded"  # Another run wrote first: deliver the event again
    DEGRADED = "degraded"  # Findable, but a model failed: deliver the event again
    REJECTED = "rejected"
    REFUSED = "refused"
    """Findable, but a model refuses every request of this configuration: no delivery helps before an operator acts."""
    POSTPONED = "postponed"  # The time of the run was up: deliver the event again

    @property
    def is_final(self) -> bool:
        """True if the event can be deleted from the queue."""
        return self not in (ChangeResult.DEGRADED, ChangeResult.SUPERSEDED, ChangeResult.POSTPONED)


MAX_PROFILE_BYTES = 350_000
"""Limit in JSON. A DynamoDB item has at most 409,600 bytes; the rest is for the vector and, within the limits below,
for an error or what is held, and for the contract of what was approved."""
MAX_NOTE_BYTES = 16_000
"""Limit in JSON of an error, and of the changes of what is held. Ten of them fit into one call of PutEvents."""
MAX_CONTRACT_BYTES = 30_000
Trust = Annotated[int, Field(ge=0, le=100)]  # Trust assigned by an operator, 0 (none) to 100 (full)


class Status(StrEnum):
    """Result of the latest registration."""

    ACTIVE = "active"
    REJECTED = "rejected"
    HELD = "held"  # It waits for an operator; the last approved content, if there is one, stays
    DELETED = "deleted"


class Enrichment(_Frozen):
    """The five fields. `negative_examples` are requests that a neighbour serves better: never positive evidence."""

    summary: str = ""
    action: str = ""
    keywords: tuple[str, ...] = ()
    positive_examples: tuple[str, ...] = ()
    negative_examples: tuple[str, ...] = ()

    def texts(self) -> tuple[str, ...]:
        return (self.summary, self.action, *self.keywords, *self.positive_examples, *self.negative_examples)


class Risk(_Frozen):
    """What a writer says that a registration does to a model that reads it, with the words that show it."""

    level: Literal["unclear", "steers", "steals"]
    span: str = ""  # Literally in what the writer was shown, else empty
    where: str = ""  # The part of the registration that has it


class Cause(_Frozen):
    """The event that caused a revision: its id and time (ISO 8601, UTC)."""

    event_id: str
    time: str


class Refusal(_Frozen):
    """A model that refused to make a part of a profile, in its role `writer` or `encoder`, and why."""

    role: str
    model: str
    cause: str


class Contract(_Frozen):
    """The parts of a version that its callers rely on, by its owner's words (`mats.domain.profile.changes`)."""

    text: str = ""
    description: str = ""
    reaches: tuple[str, ...] = ()  # Hosts, commands and tools
    inputs: Mapping[str, str] = {}  # The type of each input, with `!` if it is required
    effects: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    details: Mapping[str, str] | None = None
    """What else a caller is shown or sends, by what it is; None in a contract of an earlier release."""

    def __hash__(self) -> int:
        return hash((self.text, self.description))  # profiles are keys of caches, and a mapping has no hash


class Held(_Frozen):
    """A registration that waits for an operator."""

    digest: str  # Its fingerprint
    changes: tuple[str, ...]  # What it changes, in words
    since: str  # ISO 8601, UTC
    approved: str = ""  # The time of the version that is shown meanwhile; empty if none is
    rejected: bool = False  # Whether an operator refused it


_UNVERSIONED = {
    "content", "rev", "indexed_rev", "cause", "first_registered", "first_text", "rated_since", "owner_examples",
}  # fmt: skip
"""Entries of a profile that do not belong to its content."""


class Profile(_Frozen):
    """The searchable description of a capability, made from the latest valid registration; without its vector."""

    namespace: str
    name: str
    kind: Kind | None = None
    status: Status = Status.ACTIVE
    error: str = ""  # Of a rejected registration, which leaves the last good content in place
    enriched: bool = False
    enrichment: Enrichment = Enrichment()
    source: SourceText | None = None
    version: str = ""
    endpoint: str = ""
    input_schema: str = ""  # As JSON text; empty if there is none
    invocation: str = ""  # How it is called, as JSON text; empty if its owner gave no way
    instructions: str = ""  # Those of a skill
    provider: str = ""  # The verified one, or what the owner wrote: `provider_verified` tells which
    provider_verified: bool = False
    tags: tuple[str, ...] = ()
    type_tags: tuple[str, ...] = ()
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    visible_to: tuple[str, ...] | None = None
    trust: Trust | None = None
    encoder: str = ""  # Name of the model of the vector stored with it; empty if there is none
    suspicious: tuple[str, ...] = ()  # The reasons for a review
    risk: Risk | None = None
    effects: tuple[str, ...] = ()  # What its owner says of them
    approved: Contract | None = None  # The version that operators approved last, if its owner has changed it since
    held: Held | None = None  # The registration that waits for an operator, or waited before an invalid one
    notes: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    """Models that refuse every request as they are configured; the profile was made without them."""
    origin: str = ""
    content: str = ""
    rev: int = 0  # Grows by one with every change; the external version in the index
    indexed_rev: int = 0  # Follows `rev` once the index has acknowledged it
    cause: Cause | None = None
    first_registered: str = ""
    """When this text, or one nearly the same, was first registered (ISO 8601, UTC); empty for a profile of a release
    that did not record it, which counts as older than any other."""
    first_text: str = ""  # A sample of that text (`mats.domain.profile.wording`)
    rated_since: str = ""  # When operators rated it (ISO 8601, UTC); empty if none has, or a release did not record it
    owner_examples: int = 0  # The number of `positive_examples` that the owner wrote; they come first

    @property
    def id(self) -> Id:
        return capability_id(self.namespace, self.name)

    @property
    def indexed_kind(self) -> Kind:
        """The kind, which every findable profile has."""
        if self.kind is None:
            raise ValueError(f"{self.id} is indexed without a kind")
        return self.kind

    @property
    def held_now(self) -> Held | None:
        """The latest registration, if it waits for an operator; None if it is shown, or invalid."""
        return self.held if self.status is Status.HELD else None

    @property
    def examples_by_owner(self) -> tuple[str, ...]:
        """The example requests that the owner wrote, without those of the writer."""
        examples = self.enrichment.positive_examples
        return examples[: self.owner_examples] if self.enriched else examples

    @property
    def is_rated(self) -> bool:
        """True if operators gave it trust, high or low, or verified its provider."""
        return self.trust is not None or self.provider_verified

    def trust_or(self, unrated: int) -> int:
        """Its trust; `unrated` if operators gave it none."""
        return unrated if self.trust is None else self.trust

    @property
    def withheld(self) -> tuple[str, ...]:
        """The flags that keep it from agents: of hidden text, and those on hold unless its owner is trusted."""
        kept = ("[hidden",) if self.is_trusted(UNRATED_TRUST) else ("[hidden", "[hold")
        return tuple(flag for flag in self.suspicious if any(level in flag for level in kept))

    def is_trusted(self, unrated: int) -> bool:
        """True if operators trust it more than an unrated one."""
        return self.trust_or(unrated) > unrated or (self.provider_verified and self.trust is None)

    @property
    def day(self) -> str:
        """The day of its first registration, as `2026-01-31`; empty if it was not recorded."""
        return self.first_registered[:10]

    @property
    def registered_s(self) -> float:
        """The time of its first registration in seconds since 1970; minus infinity if it was not recorded."""
        try:
            return datetime.fromisoformat(self.first_registered).timestamp()
        except ValueError:
            return -math.inf

    def is_newer_than(self, time: str) -> bool:
        """True if its text was registered first, or replaced, after this time (ISO 8601)."""
        return self.registered_s > datetime.fromisoformat(time).timestamp()

    @property
    def filtered_tags(self) -> tuple[str, ...]:
        """The tags and effects by which an index filters."""
        return (*self.tags, *map(descriptors.effect_tag, self.effects))

    @property
    def findable(self) -> bool:
        """True if there is content to index; also true if only the latest registration was rejected."""
        return self.status is not Status.DELETED and self.source is not None

    @property
    def is_indexed(self) -> bool:
        """True if the index has acknowledged this revision."""
        return self.indexed_rev == self.rev

    def with_assigned(self, assigned: Assigned) -> Self:
        """The unsealed profile with this assignment. What its owner had claimed beside a verified provider is lost."""
        claimed = "" if self.provider_verified else self.provider
        update = {
            "trust": assigned.trust,
            "provider": assigned.provider or claimed,
            "provider_verified": bool(assigned.provider),
        }
        return self.model_copy(update=update)

    def reject(self, error: str) -> Self:
        """The last good content with the faults of the latest registration, of which there may be thousands.

        What waited before is kept: an invalid registration releases nothing.
        """
        held = self.held and self.held.model_copy(update={"changes": ()})  # an error takes their room
        update = {"status": Status.REJECTED, "error": truncate_json(error, MAX_NOTE_BYTES), "held": held}
        return self.model_copy(update=update).seal()

    def hold(self, held: Held) -> Self:
        """What is shown while the latest registration waits for an operator."""
        return self.model_copy(update={"status": Status.HELD, "error": "", "held": held}).seal()

    def after(self, rev: int) -> Self:
        """The profile as the revision after this one in another store, not indexed and without a vector."""
        return self.model_copy(update={"rev": rev + 1, "indexed_rev": 0, "encoder": ""}).seal()

    def with_approved(self, approved: Contract | None) -> Self:
        return self if self.approved == approved else self.model_copy(update={"approved": approved}).seal()

    def with_refusal(self, refusal: Refusal) -> Self:
        """The profile marked. A mark of the same role and model keeps its first cause: a repeated one is no change."""
        same = any((known.role, known.model) == (refusal.role, refusal.model) for known in self.refused)
        others = tuple(known for known in self.refused if known.role != refusal.role)
        return self if same else self.model_copy(update={"refused": (*others, refusal)}).seal()

    def without_refusal(self, *roles: str) -> Self:
        kept = tuple(known for known in self.refused if known.role not in roles)
        return self if kept == self.refused else self.model_copy(update={"refused": kept}).seal()

    def seal(self) -> Self:
        """The same profile with the fingerprint of what is indexed or returned, without counters, times and cause."""
        return self.model_copy(update={"content": fingerprint(self.model_dump(mode="json", exclude=_UNVERSIONED))})


def tombstone(id: Id, **more: Any) -> Profile:
    """The profile of a removed capability: its id and no content, and `more` attributes."""
    namespace, name = parts(id)
    return Profile(namespace=namespace, name=name, status=Status.DELETED, **more).seal()


def parse_profile(text: str) -> Profile:
    """A profile that another registry wrote, as JSON. Raises ValueError: it has a part that no reader can use."""
    profile = Profile.model_validate_json(text)
    for inner in filter(None, (profile.input_schema, profile.invocation)):
        json.loads(inner)
    if profile.source and not profile.kind:
        raise ValueError(f"the profile {profile.id} has no kind")
    return profile


_DESCRIBED, _EXEMPLIFIED = 20, 5
"""Different content words of a description, and examples of the owner, from which on a writer adds little: 0074."""


def is_sparse(registration: Registration) -> bool:
    """True if a registration says so little that a writer's examples complete it."""
    described = len(set(content_words(registration.description))) >= _DESCRIBED
    return not described and len(registration.examples) < _EXEMPLIFIED


def as_written(registration: Registration) -> Enrichment:
    """The five fields from the owner's text alone, used until a writer has answered."""
    return Enrichment(
        summary=clean(opening(plain(registration.description))),
        keywords=registration.tags,
        positive_examples=registration.examples,
        negative_examples=registration.negative_examples,
    )


def with_owners_words(written: Enrichment, registration: Registration) -> Enrichment:
    """The writer's text merged with the owner's: tags join the keywords, and the owner's examples come first."""
    return written.model_copy(
        update={
            "keywords": tuple(dict.fromkeys((*written.keywords, *registration.tags))),
            "positive_examples": tuple(dict.fromkeys((*registration.examples, *written.positive_examples))),
            "negative_examples": tuple(dict.fromkeys((*registration.negative_examples, *written.negative_examples))),
        }
    )


_CARRIED_OVER = {
    "namespace", "name", "kind", "version", "endpoint", "tags", "type_tags", "lifecycle", "visible_to",
}  # fmt: skip


def profile_of(
    registration: Registration,
    *,
    assigned: Assigned = NOTHING_ASSIGNED,
    origin: str,
    enrichment: Enrichment | None = None,
    risk: Risk | None = None,
    notes: tuple[str, ...] = (),
) -> Profile:
    """The profile of a registration, without a revision; without an enrichment it is the raw one, `enriched: false`."""
    call = invocation_of(registration)
    (input_schema, is_cut), cut = descriptors.input_schema_of(registration), descriptors.SCHEMA_CUT
    profile = Profile(
        **registration.model_dump(include=_CARRIED_OVER),
        provider=assigned.provider or registration.provider,
        provider_verified=bool(assigned.provider),
        enriched=enrichment is not None,
        enrichment=enrichment or as_written(registration),
        owner_examples=len(set(registration.examples)),
        source=SourceText.of(registration),
        input_schema=input_schema,
        invocation=to_text(call),
        instructions=instructions_of(registration) if registration.kind is Kind.SKILL else "",
        trust=assigned.trust,
        suspicious=_flags(registration, enrichment, risk, assigned),
        risk=risk,
        effects=descriptors.effects_of(registration.descriptor, getattr(call, "method", "").upper()),
        origin=origin,
        notes=(*(note for note in notes if note != cut), *((cut,) if is_cut else ())),
    )
    if profile.instructions and _size(profile) > MAX_PROFILE_BYTES:
        profile = profile.model_copy(update={"instructions": ""})
    return profile.seal()


def _flags(
    registration: Registration, enrichment: Enrichment | None, risk: Risk | None, assigned: Assigned
) -> tuple[str, ...]:
    """The findings in a registration, unless an operator cleared them for this very text, and in what a writer made.

    Where operators trust the owner, what would be on hold is noted.
    """
    from mats.domain.capability.suspicion import WRITTEN, findings  # noqa: PLC0415 - cold starts count

    found = findings(
        registration, enrichment.texts() if enrichment else (), *((risk.level, risk.where) if risk else ())
    )
    if found and assigned.cleared == fingerprint(registration.item()):
        found = tuple(each for each in found if each.where == WRITTEN)
    return tuple(str(each.as_note() if assigned.is_trusted else each) for each in found)


def check_profile_size(profile: Profile) -> Profile:
    """The profile unchanged. Raises RegistrationInvalid: it is too long for a row."""
    size = _size(profile)
    if size > MAX_PROFILE_BYTES:
        message = f"is too long: its profile would be {size:,} bytes; shorten it to fit {MAX_PROFILE_BYTES:,}"
        raise RegistrationInvalid([Fault("", message)])
    return profile


def _size(profile: Profile) -> int:
    return len(profile.model_dump_json().encode())
