"""What can be asked of the registry and done to it by whoever sits at this machine, whatever `visible_to` says."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mats.bootstrap.local import Local
from mats.domain.capability import Id, capability_id
from mats.domain.errors import (
    CapabilityError,
    CapabilityNotFound,
    DependencyFailed,
    Fault,
    KindConflict,
    RegistrationInvalid,
)
from mats.domain.placement import Placed
from mats.domain.profile import NOT_TEXT, Profile, Status, same_text
from mats.domain.registration import Registration
from mats.local.console.asked import Wanted
from mats.local.console.exposure import exposure
from mats.local.console.journal import Journal
from mats.local.console.roll import Roll
from mats.local.outlook import told
from mats.usecases.preview import Preview

_PATIENCE_S, _LOOK_S = 5.0, 0.05

Admits = Callable[[str | None], bool]
"""Whether an item may be replaced, told by its tag; None where there is none."""


class Overtaken(CapabilityError):
    """What the caller last saw is not what is there now."""


class Desk:
    """The registry of this machine. Safe to share between threads."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._roll, self._journal = Roll(local), Journal(local.settings.home)

    def look(self) -> None:
        """Read what has come since the last look, so that nobody has to wait for it.

        Raises:
            DependencyFailed: the storage cannot be read.
        """
        self._roll.now()
        self._journal.latest()

    def overview(self) -> dict[str, Any]:
        """Counts of everything."""
        local, now, depth = self._local, self._roll.now(), self._local.events.depth()
        return {
            "home": str(local.settings.home),
            "registered": len(now.rows),
            "findable": now.findable,
            "kinds": now.kinds,
            "shows": now.shows,
            "changes": {"waiting": depth.waiting, "given_up": depth.dead},
            "providers": sum(1 for provider in now.providers if provider),
            "encoder": local.encoder.name if local.encoder else f"none: {local.without_encoder}",
            "writer": local.writer.name if local.writer else None,
        }

    def page(self, wanted: Wanted) -> dict[str, Any]:
        """A page of the list."""
        page = self._roll.now().page(wanted)
        return {"total": page.total, "capabilities": [row.told() for row in page.rows], "following": page.following}

    def one(self, id: Id) -> dict[str, Any]:
        """All that is known of a capability.

        Raises:
            CapabilityNotFound: there is neither a registration nor a profile.
        """
        written, kept = self._local.registry.written(id), self._local.profiles.get([id]).get(id)
        if written is None and kept is None:
            raise CapabilityNotFound(id)
        profiles = [*self._local.profiles.versions(id), *([kept.profile] if kept else [])]
        return {
            "id": id,
            "registration": _item(written.text) if written else None,
            "etag": written.tag if written else "",
            "profile": kept.profile.model_dump(mode="json") if kept else None,
            "versions": versions(profiles),
            "given_up": next((reason for dead, reason in self._local.events.dead() if dead == id), ""),
        }

    def exposure(self) -> dict[str, Any]:
        """Who is seen how often in the latest answers."""
        return exposure(self._journal.latest(), self._roll.now().providers)

    def check(self, item: object) -> dict[str, Any]:
        """Whether an item is a registration, what is wrong with it if not, and what would become of it."""
        try:
            registration = Registration.parse(item)
        except RegistrationInvalid as error:
            errors = [{"field": fault.attribute, "message": fault.message} for fault in error.faults]
            return {"valid": False, "errors": errors, "id": _id_of(item, error.faults), "placed": None}
        placed = self._local.registry.foreseen(registration)
        return {"valid": True, "errors": [], "id": registration.id, "placed": placed}

    def preview(self, item: object) -> dict[str, Any]:
        """What would become of an item, as `mats preview` has it.

        Raises:
            RegistrationInvalid: it is no registration.
        """
        local, registration = self._local, Registration.parse(item)
        preview = Preview(discover=local.discover, enrich=local.enrich, registry=local.registry, trust=local.trust)
        return told(preview(registration, local.settings.audiences))

    def put(self, id: Id, item: object, admits: Admits) -> dict[str, Any]:
        """Register an item under an id, and wait a little until it can be found.

        Once this returns, it is written, found or not.

        Raises:
            RegistrationInvalid: it is no registration, or one of another id.
            Overtaken: what is there now is not admitted.
            KindConflict: another kind has the id.
        """
        registration = Registration.parse(item)
        if registration.id != id:
            raise RegistrationInvalid([Fault("name", f"makes it {registration.id!r}, and the address is of {id!r}")])
        placed = self._local.registry.put_if(admits, registration)
        if placed is None:
            raise Overtaken(f"{id} is not as it was when it was last looked at; look again")
        if placed is Placed.OTHER_KIND:
            raise KindConflict(id)
        findable = self._becomes(id, lambda profile: _tells(profile, registration))
        return {"id": id, "placed": placed, "findable": findable}

    def remove(self, id: Id, admits: Admits) -> dict[str, Any]:
        """Take an item out, and wait a little until it can no longer be found.

        Only then may the id come back as another kind.

        Raises:
            CapabilityNotFound: there is none.
            Overtaken: what is there now is not admitted.
        """
        match self._local.registry.remove_if(admits, id):
            case None:
                raise Overtaken(f"{id} is not as it was when it was last looked at; look again")
            case False:
                raise CapabilityNotFound(id)
        self._becomes(id, lambda profile: profile.status is Status.DELETED)
        return {"id": id, "removed": True}

    def _becomes(self, id: Id, done: Callable[[Profile], bool]) -> bool:
        """Whether the index has what is to become of a profile, now or after a little while."""
        deadline = time.monotonic() + _PATIENCE_S
        with suppress(DependencyFailed):  # it is written all the same
            while True:
                waits = self._local.events.unfinished(id)
                if any(indexed and done(profile) for profile, indexed in self._local.profiles.without_vectors([id])):
                    return True
                if not waits or time.monotonic() > deadline:
                    return False
                time.sleep(_LOOK_S)
        return False


def _tells(profile: Profile, registration: Registration) -> bool:
    """Whether a profile was made of this very registration."""
    if profile.status is not Status.ACTIVE or not same_text(profile.origin, registration):
        return False
    return all(getattr(profile, name) == getattr(registration, name) for name in NOT_TEXT)


def _id_of(item: object, faults: Sequence[Fault]) -> Id | None:
    """The id of an item that is wrong elsewhere only."""
    if not isinstance(item, Mapping) or {fault.attribute for fault in faults} & {"", "namespace", "name"}:
        return None
    return capability_id(item["namespace"].strip(), item["name"].strip())


def _item(text: str) -> Any:
    """What is written; None if it cannot be read, or holds numbers that no JSON has."""
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        return None


def versions(profiles: list[Profile]) -> list[dict[str, Any]]:
    """Revisions, given oldest first, as JSON, newest first; of each what differs from the one before."""
    before: dict[str, Any] | None = None
    shown = []
    for profile in profiles:
        fields = _fields(profile)
        names = {**fields, **before} if before else {}
        changed = [name for name in names if fields.get(name) != (before or {}).get(name)]
        shown.append(
            {
                "rev": profile.rev,
                "status": profile.status,
                "enriched": profile.enriched,
                "origin": profile.origin,
                "cause": profile.cause.model_dump() if profile.cause else None,
                "changed": changed,
            }
        )
        before = fields
    return shown[::-1]


_COUNTS = {"content", "rev", "indexed_rev", "cause"}
"""What tells revisions apart and says nothing of the capability."""


def _fields(profile: Profile) -> dict[str, Any]:
    """Everything that can change, under one name each."""
    fields = profile.model_dump(mode="json", exclude={*_COUNTS, "enrichment", "source"})
    return {**fields, **profile.enrichment.model_dump(), **(profile.source.model_dump() if profile.source else {})}
