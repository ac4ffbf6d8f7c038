"""Review of held registrations: what waits, beside what is shown, and the decision of an operator."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import CapabilityNotFound, Fault, NotPossible
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.changes import compare, contract_of, own_domain
from mats.domain.profile.origin import fingerprint
from mats.domain.profile.profile import Held, Profile, profile_of
from mats.edge.observers import log_record
from mats.ports import Item
from mats.usecases.gate import MOST_CHANGES

_COMPARED = (
    "version", "title", "description", "examples", "endpoint", "invocation", "input_schema", "instructions", "effects",
    "tags", "type_tags", "provider", "lifecycle", "visible_to", "suspicious",
)  # fmt: skip


WAITS = "{0} has a change that waits, whose text would be cleared unseen: decide first, `mats review {0}`"


def waiting(local: LocalSystem, ids: Sequence[Id] = ()) -> list[dict[str, Any]]:
    """List held registrations, flagged ones first, each with its changes in words and the fields that differ.

    With ids, rejected registrations of these are included, with all of their changes; without ids, all that wait for a
    decision are listed, each with its gravest changes.
    """
    known = bool(ids)
    ids = ids or local.stores.listing.list_held()
    stored, items = local.stores.profiles.get(ids), local.stores.registry.get(ids)
    assigned = local.stores.trust.get(ids)
    found = [
        {
            "id": id,
            **held.model_dump(),
            **({"changes": _all_changes(profile, held, items[id])} if known else {}),
            "fields": list(_differences(profile, items[id], assigned[id])),
        }
        for id in ids
        if id in stored
        and id in items
        and (held := (profile := stored[id].profile).held_now)
        and (known or not held.rejected)
    ]
    return sorted(found, key=lambda one: all(field["field"] != "suspicious" for field in one["fields"]))


def _all_changes(profile: Profile, held: Held, item: Item) -> Sequence[str]:
    """Those that are stored, and those of the same contracts that had no room there."""
    before = profile.approved or (contract_of(profile) if profile.source else None)
    if before is None or len(held.changes) <= MOST_CHANGES:
        return held.changes
    after = contract_of(profile_of(Registration.parse(item), origin=""))
    found = map(str, compare(before, after, own=own_domain(profile.namespace)))
    return list(dict.fromkeys((*held.changes[:MOST_CHANGES], *found)))


def _differences(shown: Profile, item: Item, assigned: Assigned) -> Iterator[dict[str, str]]:
    before, after = _fields(shown), _fields(profile_of(Registration.parse(item), assigned=assigned, origin=""))
    for name in _COMPARED:
        if before.get(name, "") != after[name]:
            yield {"field": name, "shown": before.get(name, ""), "held": after[name]}


def _fields(profile: Profile) -> Mapping[str, str]:
    if profile.source is None:
        return {}
    examples = list(profile.examples_by_owner)
    said = {"title": profile.source.title, "description": profile.source.description, "examples": examples}
    values = {**profile.model_dump(mode="json"), **said}
    shown = {name: values[name] or "" for name in _COMPARED}
    return {name: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for name, v in shown.items()}


def decide(local: LocalSystem, id: Id, digest: str, *, approve: bool) -> None:
    """Approve or reject the held registration with this digest.

    Raises CapabilityNotFound: nothing is held under this id; NotPossible: another registration is held by now.
    """
    held, item = waiting(local, [id]), local.stores.registry.get([id]).get(id)
    if not held or item is None:
        raise CapabilityNotFound(id)
    if not digest == held[0]["digest"] == fingerprint(Registration.parse(item).item()):
        raise NotPossible([Fault("digest", f"{id} has changed since: look at it again")])
    local.stores.trust.edit(id, lambda row: row.approve(digest) if approve else row.reject(digest))
    decision = "approved" if approve else "rejected"
    log_record({"event": "reviewed", "id": id, "decision": decision, "digest": digest, "changes": held[0]["changes"]})
