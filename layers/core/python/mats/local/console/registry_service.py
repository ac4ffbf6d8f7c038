"""The registry for users of this machine. It ignores `visible_to`."""

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import Any, Self

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id, capability_id
from mats.domain.capability.registration import Registration, apply_patch
from mats.domain.errors import (
    CapabilityError,
    CapabilityNotFound,
    DependencyFailed,
    Fault,
    KindConflict,
    RegistrationInvalid,
    RequestInvalid,
)  # fmt: skip
from mats.domain.profile import assignment
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned, namespace_of_pattern
from mats.domain.profile.origin import NOT_TEXT, Placed, fingerprint, same_text
from mats.domain.profile.profile import Profile, Status
from mats.domain.ranking.query import Filter
from mats.domain.trust.precedence import COPY
from mats.edge.http import LOCAL
from mats.edge.snippets.capability import Snippets
from mats.local.console import actions
from mats.local.console.capability_list import CapabilityList, Snapshot
from mats.local.console.selection import ListQuery, is_vector_pending
from mats.local.imports.importer import RESERVED
from mats.local.imports.sources import state_json
from mats.local.preview.report import near_duplicates, preview_over
from mats.local.review import decide, waiting
from mats.local.use import UseQuery, report_use
from mats.ports import Item, Precondition, Stored

_POLL_S = 0.05
_NEWEST = 6
_BOOKKEEPING = {"content", "rev", "indexed_rev", "cause", "first_registered", "first_text", "owner_examples"}
"""Fields that differ between revisions without a change of the capability."""


class RegistryService:
    """Safe to share between threads."""

    def __init__(self, local: LocalSystem, *, timeout_s: float = 5.0) -> None:
        """`timeout_s` is how long a write waits for the index."""
        self._local, self._stores, self._timeout_s = local, local.stores, timeout_s
        self._encoder = local.models.encoder.name if local.models.encoder else ""
        self._list = CapabilityList(local.stores.listing, local.stores.queue, self._encoder)
        self._is_operator = True

    def for_owners(self) -> Self:
        """The same for requests of owners: only operators assign trust."""
        owners = copy(self)
        owners._is_operator = False
        return owners

    def refresh(self) -> None:
        """Read the changes since the last refresh."""
        self._list.refresh()

    def snapshot(self) -> Snapshot:
        return self._list.current()

    def overview(self) -> dict[str, Any]:
        snapshot, depth, models = self._list.current(), self._stores.queue.depth(), self._local.models
        return {
            "home": str(self._local.settings.home),
            "registered": len(snapshot.rows),
            "findable": snapshot.findable,
            "kinds": snapshot.kinds,
            "shows": snapshot.shows,
            "changes": {"waiting": depth.waiting, "given_up": depth.dead},
            "sources": len(self._stores.sources.all()),
            "encoder": models.encoder.name if models.encoder else f"none: {models.without_encoder}",
            "writer": models.writer.name if models.writer else None,
        }

    def page(self, query: ListQuery) -> dict[str, Any]:
        return self._list.current().page(query)

    def use(self, query: UseQuery) -> dict[str, Any]:
        return report_use(self._local, query)

    def get(self, id: Id) -> dict[str, Any]:
        item, stored = self._stores.registry.get_tagged(id), self._stores.profiles.get([id]).get(id)
        if item is None and stored is None:
            raise CapabilityNotFound(id)
        profiles = [*self._stores.profiles.versions(id), *([stored.profile] if stored else [])]
        read = self._local.reliability
        reliability = read(id, stored.profile.trust, LOCAL) if stored and read else None
        return {
            "id": id,
            "registration": _parse_item(item.text) if item else None,
            "etag": item.etag if item else "",
            "reliability": reliability.to_json() if reliability else None,
            "profile": stored.profile.model_dump(mode="json") if stored else None,
            "same_text": self._same_text(stored) if stored and stored.profile.findable else [],
            "vector_pending": stored is not None and is_vector_pending(stored.profile, self._encoder),
            "snippets": Snippets.of(stored.profile).model_dump() if stored and stored.profile.findable else None,
            "versions": versions_json(profiles),
            "given_up": next((letter.reason for letter in self._stores.queue.dead_letters() if letter.id == id), ""),
        }

    def _same_text(self, stored: Stored) -> list[Id]:
        """Capabilities of other namespaces with nearly the same text."""
        admitted = Filter(audiences=frozenset(self._local.settings.audiences))
        near = near_duplicates(self._stores.index, stored.profile, stored.vector, admitted)
        return [one.id for one in near if not one.same_namespace and one.overlap >= COPY]

    def sources(self) -> dict[str, Any]:
        return {"sources": [state_json(state) for state in self._stores.sources.all()]}

    def check(self, item: object) -> dict[str, Any]:
        """Validate an item; if it is valid, with the placement a put would have."""
        try:
            registration = Registration.parse(item)
        except RegistrationInvalid as error:
            errors = [{"field": fault.attribute, "message": fault.message} for fault in error.faults]
            return {"valid": False, "errors": errors, "id": _id_of(item, error.faults), "placed": None}
        placed = self._stores.registry.placement(registration)
        return {"valid": True, "errors": [], "id": registration.id, "placed": placed}

    def preview(self, item: object) -> dict[str, Any]:
        return preview_over(self._local)(Registration.parse(item), self._local.settings.audiences).to_json()

    def import_documents(self, request: actions.ImportRequest) -> dict[str, Any]:
        return actions.import_documents(self._local, request, self._find_reserved)

    def register_batch(self, request: actions.BatchRequest) -> dict[str, Any]:
        return actions.register_batch(self._local, request, self._find_reserved)

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
        """Those that only operators write, if this is an owner's request: what is trusted is theirs."""
        return () if self._is_operator else assignment.of_operators(self._stores.trust.get(ids))

    def _require_free(self, ids: Collection[Id]) -> None:
        """Raises RequestInvalid: only operators write one of these."""
        if reserved := self._find_reserved(ids):
            raise RequestInvalid([Fault("namespace", RESERVED.format(min(reserved)))])

    def _require_operator(self, field: str = "") -> None:
        """Raises RequestInvalid: this is an owner's request."""
        if not self._is_operator:
            raise RequestInvalid([Fault(field, "is for operators: send a token with the scope operate")])

    def act(self, request: actions.ActionRequest) -> dict[str, Any]:
        """The number of capabilities that are as asked for now, and the reason for each other one."""
        if request.action in (actions.Action.TRUST, actions.Action.CLEAR):
            self._require_operator("action")
        done: list[Id] = []
        failed: list[dict[str, str]] = []
        for id in map(Id, dict.fromkeys(request.ids)):
            try:
                self._act_on(id, request)
                done.append(id)
            except CapabilityError as error:
                failed.append({"id": id, "message": str(error)})
        self._settle(done)
        return {"done": len(done), "failed": failed}

    def _act_on(self, id: Id, request: actions.ActionRequest) -> None:
        def retag(item: Item) -> Registration:
            others = [tag for tag in item.get("tags", []) if tag not in request.tags]
            return apply_patch(
                item, {"tags": [*others, *(request.tags if request.action is actions.Action.TAG else ())]}
            )

        self._require_free([id])
        registry, trust = self._stores.registry, self._stores.trust
        match request.action:
            case actions.Action.REMOVE:
                if not registry.remove(id):
                    raise CapabilityNotFound(id)
            case actions.Action.TRUST | actions.Action.CLEAR:
                if (item := registry.get([id]).get(id)) is None:
                    raise CapabilityNotFound(id)
                cleared = {"cleared": fingerprint(Registration.parse(item).item())}
                changes: Any = {"trust": request.trust} if request.action is actions.Action.TRUST else cleared
                trust.put(id, replace(trust.rows([id]).get(id, NOTHING_ASSIGNED), **changes))
            case _:
                registry.edit(id, retag)

    def list_held(self) -> dict[str, Any]:
        return {"waiting": waiting(self._local)}

    def review(self, request: actions.ReviewRequest) -> dict[str, Any]:
        self._require_operator()
        decide(self._local, Id(request.id), request.digest, approve=request.approve)
        self._settle([Id(request.id)])
        return request.model_dump()

    def lessons(self) -> dict[str, Any]:
        return {"lessons": [{"request": text, "id": id} for text, id in self._local.teach.lessons()]}

    def teach(self, lesson: actions.LessonRequest) -> dict[str, Any]:
        self._require_operator()
        if lesson.id is None:
            return {"request": lesson.request, "withdrawn": self._local.teach.forget(lesson.request)}
        self._local.teach(lesson.request, Id(lesson.id))
        return lesson.model_dump()

    def synonyms(self) -> dict[str, Any]:
        return {"synonyms": self._stores.synonyms.load()}

    def change_synonyms(self, request: actions.SynonymRequest) -> dict[str, Any]:
        """Add or remove words; all groups as they are now."""
        self._require_operator()
        book = self._stores.synonyms
        book.save(actions.changed_groups(book.load(), request.words, remove=request.remove))
        return self.synonyms()

    def trust_of(self, query: actions.TrustQuery) -> dict[str, Any]:
        key = _pattern(query.namespace)
        return _trust_json(key, self._stores.trust.rows([key]).get(key, NOTHING_ASSIGNED))

    def assign(self, request: actions.TrustRequest) -> dict[str, Any]:
        """Write the row of a namespace, with the number of capabilities that it concerns."""
        self._require_operator()
        key, provider, trust = _pattern(request.namespace), request.provider.strip(), self._stores.trust
        if provider and not assignment.is_provider(provider):
            raise RequestInvalid([Fault("provider", "must be a name of visible characters on one line")])
        assigned = replace(trust.rows([key]).get(key, NOTHING_ASSIGNED), trust=request.trust, provider=provider)
        trust.put(key, assigned)
        ids = list(self._stores.registry.ids(namespace=namespace_of_pattern(key) or ""))
        self._settle(ids[: actions.MOST_AT_ONCE])
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
                        self._list.expire()
                        return True
                    if not waiting or time.monotonic() > deadline:
                        break
                    time.sleep(_POLL_S)
        self._list.expire()
        return False


def _pattern(namespace: str) -> Id:
    """The key of a namespace's row; with or without the `.*` at its end."""
    try:
        return assignment.parse_target(f"{namespace.removesuffix('.*')}.*" if "/" not in namespace else "")
    except ValueError as error:
        raise RequestInvalid([Fault("namespace", "must be a namespace such as com.acme")]) from error


def _trust_json(key: Id, assigned: Assigned) -> dict[str, Any]:
    return {"namespace": namespace_of_pattern(key), "trust": assigned.trust, "provider": assigned.provider}


def versions_json(profiles: list[Profile]) -> list[dict[str, Any]]:
    """Revisions (oldest first) as JSON, newest first, each with the fields that differ from the revision before."""
    before: dict[str, Any] | None = None
    versions = []
    for profile in profiles:
        fields = profile.model_dump(mode="json", exclude={*_BOOKKEEPING, "enrichment", "source"})
        fields |= profile.enrichment.model_dump() | (profile.source.model_dump() if profile.source else {})
        names = {**fields, **before} if before else {}
        versions.append(
            {
                "rev": profile.rev,
                "status": profile.status,
                "enriched": profile.enriched,
                "origin": profile.origin,
                "cause": profile.cause.model_dump() if profile.cause else None,
                "changed": [name for name in names if fields.get(name) != (before or {}).get(name)],
            }
        )
        before = fields
    return versions[::-1]


def _id_of(item: object, faults: Sequence[Fault]) -> Id | None:
    """The id of an invalid item, if namespace and name are valid."""
    if not isinstance(item, Mapping) or {fault.attribute for fault in faults} & {"", "namespace", "name"}:
        return None
    return capability_id(item["namespace"].strip(), item["name"].strip())


def _parse_item(text: str) -> Any:
    """An item of the table; None if it is not JSON."""
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None
