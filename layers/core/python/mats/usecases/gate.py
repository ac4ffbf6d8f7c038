"""The gate: which drafts wait until an operator has approved them, and what is shown meanwhile."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import hypot
from operator import mul
from typing import TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import Assigned, Policy
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
from mats.domain.profile.origin import NOT_TEXT, fingerprint, same_text
from mats.domain.profile.profile import MAX_NOTE_BYTES, Cause, ChangeResult, Contract, Held, Profile, Status, tombstone
from mats.domain.search.lookups import Vector
from mats.domain.text.fence import truncate_json
from mats.ports import ProfileStore, Stored
from mats.usecases.drafts import Draft, Pass

OnWait = Callable[[Id, DependencyFailed], None]
"""Called with the error of a model that a capability waits for, or is refused by; from several threads."""

Vectors: TypeAlias = Sequence[Vector | None]
TimeLimit = Callable[[Callable[[], Vectors]], Vectors]
"""Runs a call of the encoder; raises OutOfTime where it takes too long."""

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
    reviewed: bool = False  # Whatever it is, an operator looks at it

    @property
    def digest(self) -> str:
        return fingerprint(self.draft.registration.item()) if self.draft.registration else ""

    def has(self, *digests: str) -> bool:
        """True if its registration has one of these digests; where all are empty, as mostly, none is computed."""
        return any(digests) and self.digest in digests

    def decide(self, similarity: float | None, cause: Cause) -> Draft:
        """The draft, or what is to be saved while its registration waits."""
        reasons: Sequence[Reason] = _NEW
        if self.approved and self.after:
            own = own_domain(self.draft.target.profile.namespace)
            reasons = compare(self.approved, self.after, similarity, own=own) or (WORDING,)
        rejected = self.has(*self.assigned.rejected)
        if rejected or self.reviewed or worst(reasons) is ChangeClass.DANGEROUS:
            return self._hold(reasons, cause, rejected=rejected)
        return _with_approved(self.draft, self.approved if self.approved != self.after else None)

    def _hold(self, reasons: Sequence[Reason], cause: Cause, *, rejected: bool) -> Draft:
        made, last = self.draft.target.profile, self.last
        before = last.profile.held if last else None
        shown = last if last and last.profile.findable else None
        if shown and rejected and is_made_from(shown.profile, self.draft):
            shown = None
        held = Held(
            digest=self.digest,
            changes=_first_reasons(reasons, made.id),
            since=before.since if before and before.digest == self.digest else cause.time,
            approved=_time_of(shown.profile) if shown else "",
            rejected=rejected,
        )
        shown = shown or Stored(Profile(namespace=made.namespace, name=made.name, approved=self.approved))
        narrowed = shown.profile.model_copy(update={"visible_to": _narrow(shown.profile.visible_to, made.visible_to)})
        return Draft(target=replace(shown, profile=narrowed.with_assigned(self.assigned).hold(held)))


def _narrow(shown: tuple[str, ...] | None, wanted: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The audiences of what is shown, without those that its owner has excluded meanwhile."""
    if shown is None or wanted is None:
        return shown if wanted is None else wanted
    return tuple(each for each in shown if each in wanted)


MOST_CHANGES = 25  # That a held profile keeps
_REASON = MAX_NOTE_BYTES // (MOST_CHANGES + 1)  # Bytes of each


def _first_reasons(reasons: Sequence[Reason], id: Id) -> tuple[str, ...]:
    """The gravest, which come first, and how many there are beyond these."""
    told = list(map(str, reasons[:MOST_CHANGES]))
    if more := len(reasons[MOST_CHANGES:]):
        told.append(f"and {more:,} more: `mats review {id}` shows all")
    return tuple(truncate_json(words, _REASON - 3) for words in told)


def _with_approved(draft: Draft, approved: Contract | None) -> Draft:
    return replace(draft, target=replace(draft.target, profile=draft.target.profile.with_approved(approved)))


def _time_of(shown: Profile) -> str:
    return shown.held.approved if shown.held else shown.cause.time if shown.cause else ""


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides which drafts of a batch wait. The encoder is asked only where a text changed and nothing else decides."""

    profiles: ProfileStore
    run: Pass
    causes: Mapping[Id, Cause]
    limit: TimeLimit | None = None
    """None: the encoder is not asked at all."""
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
            if not (self.run.maker.encoder and id in told and told[id] is None):
                decided[id] = case.decide(told.get(id), self.causes[id])
            else:
                problem = ChangeResult.DEGRADED if self.run.vectors else ChangeResult.POSTPONED
                decided[id] = Draft(target=case.last or Stored(tombstone(id)), problem=problem)
        return {id: self._without_stale_vector(draft) for id, draft in decided.items()}

    def _case(
        self, draft: Draft, last: Stored | None, assigned: Assigned, removed: dict[str, Sequence[Profile]]
    ) -> "Draft | _Case":
        """The case that a decision compares; the draft itself, if it needs none."""
        reviewed, made = assigned.policy is Policy.REVIEW, draft.target.profile
        case = _Case(draft, last, assigned, reviewed=reviewed)
        rejected, is_open = case.has(*assigned.rejected), assigned.policy is Policy.OPEN
        if case.has(assigned.approved) or (is_open and not rejected):
            return draft
        held = last.profile.held if last else None
        again = held is not None and case.has(held.digest)
        if last and held and again and last.profile.held_now:
            # until an operator decides, or its owner changes it
            waiting = last.profile.with_assigned(assigned).hold(held.model_copy(update={"rejected": rejected}))
            return Draft(target=replace(last, profile=waiting))
        asked_for = self.run.maker.review_new and not assigned.is_rated and not assigned.policy
        if_new = reviewed or asked_for or held is not None  # What waits is not let through by a change that follows it
        gated = assigned.is_rated or if_new
        if last and not rejected and is_made_from(last.profile, draft):
            return _with_approved(draft, last.profile.approved if gated else None)
        known = last.profile if last and (last.profile.findable or last.profile.approved) else None
        if known:
            waits = gated or rejected or not known.findable
        else:
            earlier = self.profiles.versions(made.id) if last else ()
            known = self._former(made, earlier, removed)
            is_forgotten = last is not None and last.profile.status is Status.DELETED and not earlier
            again = again or if_new or bool(assigned.approved) or (assigned.is_rated and is_forgotten)
            waits = known is not None or rejected or again
        if not waits:
            return draft
        approved = (known.approved or contract_of(known)) if known else None
        return replace(case, approved=approved, after=contract_of(made), reviewed=reviewed or again)

    def _former(
        self, made: Profile, earlier: Sequence[Profile], removed: dict[str, Sequence[Profile]]
    ) -> Profile | None:
        """The rated or held version of an entry that was removed and is registered again, perhaps under another name.

        `earlier` are the versions of its id, oldest first; `removed` keeps what was removed from each namespace.
        """
        same = next((each for each in reversed(earlier) if each.findable or each.held or each.approved), None)
        if same and _is_guarded(same):
            return same
        if made.namespace not in removed:
            removed[made.namespace] = [*filter(_is_guarded, self.profiles.removals(made.namespace))]
        after = contract_of(made) if removed[made.namespace] else Contract()
        others = (each for each in removed[made.namespace] if each.name != made.name)
        return next((each for each in others if is_renamed(each.approved or contract_of(each), after)), None)

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
        stale = bool(profile.held_now and encoder) and profile.encoder != encoder
        return replace(draft, target=replace(draft.target, vector=None)) if stale else draft


def _nearest(vectors: Sequence[Vector | None]) -> float | None:
    """The largest cosine of the first with one of the others; None if one is missing."""
    found = [vector for vector in vectors if vector is not None]
    if len(found) < len(vectors):
        return None
    return max(_cosine(found[0], each) for each in found[1:])


def _cosine(one: Vector, other: Vector) -> float:
    return float(sum(map(mul, one, other)) / (hypot(*one) * hypot(*other) or 1.0))


def _is_unclear(case: _Case) -> bool:
    """True if only the similarity of the texts decides."""
    if not case.approved or not case.after or case.after.description in ("", case.approved.description):
        return False
    decided = case.reviewed or case.has(*case.assigned.rejected)
    return not decided and worst(compare(case.approved, case.after)) is not ChangeClass.DANGEROUS


def _is_guarded(profile: Profile) -> bool:
    """True if operators rated it, or a change of it waited for them."""
    return profile.is_rated or bool(profile.held)
