"""The registry for users of this machine. It ignores `visible_to`."""

import json
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any, Self

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration, apply_patch
from mats.domain.errors import (
    CapabilityNotFound,
    DependencyFailed,
    Fault,
    KindConflict,
    NotPossible,
    RegistrationInvalid,
    RequestInvalid,
)  # fmt: skip
from mats.domain.policies.claims import COPY
from mats.domain.profile import assignment
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned, namespace_of_pattern
from mats.domain.profile.origin import NOT_TEXT, Placed, fingerprint, same_text
from mats.domain.profile.profile import Profile, Status
from mats.domain.profile.wording import Wording
from mats.domain.search.query import Filter
from mats.domain.text.words import query_terms
from mats.edge.snippets import Snippets
from mats.local.console import requests
from mats.local.console.capability_list import CapabilityList
from mats.local.console.selection import ListQuery, is_vector_pending
from mats.local.imports.importer import RESERVED
from mats.local.preview.report import preview_over
from mats.local.review import WAITS, decide, waiting
from mats.local.use import UseQuery, report_use
from mats.ports import Precondition, Stored

_POLL_S = 0.05
_MOST_SETTLED = 200  # Capabilities of a namespace whose new trust a request waits for
_NEAR = 20  # Words of a text that are searched, and hits that are compared with it


class RegistryService:
    """Safe to share between threads."""

    def __init__(self, local: LocalSystem, *, timeout_s: float = 5.0) -> None:
        """`timeout_s` is how long a write waits for the index."""
        self._local, self._stores, self._timeout_s = local, local.stores, timeout_s
        self._encoder = local.models.encoder.name if local.models.encoder else ""
        self.capabilities = CapabilityList(local.stores.listing, local.stores.queue, self._encoder)
        self._is_operator = True

    def for_owners(self) -> Self:
        """The same for requests of owners: only operators assign trust."""
        owners = copy(self)
        owners._is_operator = False
        return owners

    def overview(self) -> dict[str, Any]:
        snapshot, depth, models = self.capabilities.current(), self._stores.queue.depth(), self._local.models
        return {
            "home": str(self._local.settings.home),
            "registered": len(snapshot.rows),
            "findable": snapshot.findable,
            "shows": snapshot.shows,
            "changes": {"waiting": depth.waiting, "given_up": depth.dead},
            "encoder": models.encoder.name if models.encoder else f"none: {models.without_encoder}",
            "writer": models.writer.name if models.writer else None,
        }

    def page(self, query: ListQuery) -> dict[str, Any]:
        return self.capabilities.current().page(query)

    def use(self, query: UseQuery) -> dict[str, Any]:
        return report_use(self._local, query)

    def get(self, id: Id) -> dict[str, Any]:
        item, stored = self._stores.registry.get_tagged(id), self._stores.profiles.get([id]).get(id)
        if item is None and stored is None:
            raise CapabilityNotFound(id)
        return {
            "id": id,
            "registration": _parse_item(item.text) if item else None,
            "etag": item.etag if item else "",
            "profile": stored.profile.model_dump(mode="json") if stored else None,
            "same_text": self._same_text(stored) if stored and stored.profile.findable else [],
            "vector_pending": stored is not None and is_vector_pending(stored.profile, self._encoder),
            "snippets": Snippets.of(stored.profile).model_dump() if stored and stored.profile.findable else None,
            "given_up": next((letter.reason for letter in self._stores.queue.dead_letters() if letter.id == id), ""),
        }

    def _same_text(self, stored: Stored) -> list[Id]:
        """Capabilities of other namespaces with nearly the same text."""
        admitted = Filter(audiences=frozenset(self._local.settings.audiences))
        source, wording = stored.profile.source, Wording.of(stored.profile)
        terms = query_terms(source.description if source else "")[:_NEAR]
        near = self._stores.index.fetch(self._stores.index.lexical(terms, admitted, depth=_NEAR))
        return [
            id
            for id, other in near.items()
            if other.namespace != stored.profile.namespace and wording.is_near(Wording.of(other), COPY)
        ]

    def preview(self, item: object) -> dict[str, Any]:
        return preview_over(self._local)(Registration.parse(item), self._local.settings.audiences)

    def import_documents(self, request: requests.ImportRequest) -> dict[str, Any]:
        return requests.import_documents(self._local, request, self._find_reserved)

    def register_batch(self, request: requests.BatchRequest) -> dict[str, Any]:
        return requests.register_batch(self._local, request, self._find_reserved)

    def put(self, id: Id, item: object, precondition: Precondition) -> dict[str, Any]:
        """Register an item under an id, and wait for the index up to the timeout.

        When this returns, the item is written; `findable` tells whether the index has it.

        Raises:
            RegistrationInvalid: it is not a registration, or has another id.
            PreconditionFailed: the precondition does not hold.
            KindConflict: another kind has the id.
        """
        registration = Registration.parse(item)
        self._require_free([id])
        if registration.id != id:
            message = f"does not match the address: the item is {registration.id!r}, the address {id!r}"
            raise RegistrationInvalid([Fault("name", message)])
        return self._findable(registration, self._stores.registry.put_if(precondition, registration))

    def patch(self, id: Id, patch: object, precondition: Precondition) -> dict[str, Any]:
        """Change what a JSON Merge Patch names, and keep the rest. Errors are those of `put`, or CapabilityNotFound."""
        self._require_free([id])
        placed, registration = self._stores.registry.edit(id, lambda item: apply_patch(item, patch), precondition)
        return self._findable(registration, placed)

    def _findable(self, registration: Registration, placed: Placed) -> dict[str, Any]:
        id = registration.id
        if placed is Placed.OTHER_KIND:
            raise KindConflict(id)

        def is_made_from_it(profile: Profile) -> bool:
            if profile.status is not Status.ACTIVE or not same_text(profile.origin, registration):
                return False
            return all(getattr(profile, name) == getattr(registration, name) for name in NOT_TEXT)

        findable = self._settle([id], is_made_from_it)
        return {"id": id, "placed": placed, "findable": findable}

    def remove(self, id: Id, precondition: Precondition) -> dict[str, Any]:
        """Remove an item, and wait until the index has dropped it, up to the timeout.

        After that the id can be registered as another kind. Errors are those of `put`, or CapabilityNotFound.
        """
        self._require_free([id])
        if not self._stores.registry.remove_if(precondition, id):
            raise CapabilityNotFound(id)
        self._settle([id], lambda profile: profile.status is Status.DELETED)
        return {"id": id, "removed": True}

    def _find_reserved(self, ids: Collection[Id]) -> Collection[Id]:
        """Ids that only operators may write, because they are trusted; none for an operator."""
        return () if self._is_operator else assignment.of_operators(self._stores.trust.get(ids))

    def _require_free(self, ids: Collection[Id]) -> None:
        """Raises RequestInvalid: only operators write one of these."""
        if reserved := self._find_reserved(ids):
            raise RequestInvalid([Fault("namespace", RESERVED.format(min(reserved)))])

    def _require_operator(self) -> None:
        """Raises RequestInvalid: this is an owner's request."""
        if not self._is_operator:
            raise RequestInvalid([Fault("", "is for operators: send a token with the scope operate")])

    def list_held(self) -> dict[str, Any]:
        return {"waiting": waiting(self._local)}

    def review(self, request: requests.ReviewRequest) -> dict[str, Any]:
        self._require_operator()
        decide(self._local, Id(request.id), request.digest, approve=request.approve)
        self._settle([Id(request.id)])
        return request.model_dump()

    def lessons(self) -> dict[str, Any]:
        return {"lessons": [lesson._asdict() for lesson in self._local.teach.lessons()]}

    def teach(self, lesson: requests.LessonRequest) -> dict[str, Any]:
        self._require_operator()
        if lesson.id is None:
            return {"request": lesson.request, "withdrawn": self._local.teach.forget(lesson.request)}
        self._local.teach(lesson.request, Id(lesson.id))
        return lesson.model_dump()

    def trust_of(self, query: requests.TrustQuery) -> dict[str, Any]:
        key = _key_of(query.target)
        return _trust_json(key, self._stores.trust.rows([key]).get(key, NOTHING_ASSIGNED))

    def assign(self, request: requests.TrustRequest) -> dict[str, Any]:
        """Change the row of a target; with the number of capabilities that it concerns.

        Raises:
            RequestInvalid: the target or the provider is not one, or this is an owner's request.
            CapabilityNotFound: nothing is registered under the target's id.
        """
        self._require_operator()
        key, trust = _key_of(request.target), self._stores.trust
        given = request.model_dump(include=request.model_fields_set - {"target"})
        if "provider" in given:
            given["provider"] = request.provider.strip()
            if given["provider"] and not assignment.is_provider(given["provider"]):
                raise RequestInvalid([Fault("provider", "must be a name of visible characters on one line")])
        namespace = namespace_of_pattern(key)
        if namespace is None:
            if (item := self._stores.registry.get([key]).get(key)) is None:
                raise CapabilityNotFound(key)
            ids = [key]
        else:
            ids = list(self._stores.registry.ids(namespace=namespace))
        if "cleared" in given:
            if namespace is not None:
                raise RequestInvalid([Fault("cleared", "is for one capability, not for a namespace")])
            if (stored := self._stores.profiles.get([key]).get(key)) and stored.profile.held_now:
                raise NotPossible([Fault("cleared", WAITS.format(key))])
            given["cleared"] = fingerprint(Registration.parse(item).item()) if request.cleared else ""
        assigned = trust.edit(key, lambda row: replace(row, **given))
        self._settle(ids[:_MOST_SETTLED])
        return {**_trust_json(key, assigned), "capabilities": len(ids)}

    def _settle(self, ids: Sequence[Id], is_expected: Callable[[Profile], bool] | None = None) -> bool:
        """Wait until the changes of these are processed, up to the timeout; True if the index has what is expected."""
        deadline = time.monotonic() + self._timeout_s
        with suppress(DependencyFailed):  # what is written, is
            for id in ids:
                while True:
                    waiting = self._stores.queue.has_unfinished(id)
                    listed = self._stores.listing.profiles([id]) if is_expected else ()
                    if is_expected and any(indexed and is_expected(profile) for profile, indexed in listed):
                        self.capabilities.expire()
                        return True
                    if not waiting or time.monotonic() > deadline:
                        break
                    time.sleep(_POLL_S)
        self.capabilities.expire()
        return False


def _key_of(target: str) -> Id:
    """The key of the row of a target; a namespace with or without the `.*` at its end."""
    try:
        return assignment.parse_target(target if "/" in target else f"{target.removesuffix('.*')}.*")
    except ValueError as error:
        raise RequestInvalid([Fault("target", "must be a namespace such as com.acme, or namespace/name")]) from error


def _trust_json(key: Id, assigned: Assigned) -> dict[str, Any]:
    return {"target": namespace_of_pattern(key) or key, "trust": assigned.trust, "provider": assigned.provider}


def _parse_item(text: str) -> Any:
    """An item of the table; None if it is not JSON."""
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None
