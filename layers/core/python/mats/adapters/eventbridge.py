"""Events on an EventBridge bus: of changed rows, of rejected registrations, and what maintenance sends again."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from mats.adapters.aws import call, client, unexpected_response
from mats.adapters.dynamodb.tables import key_of
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import pattern_id
from mats.domain.profile.profile import Profile
from mats.domain.text.fence import truncate_json
from mats.ports import NamespaceChange

_REJECTED = {"Source": "mats.enrichment", "DetailType": "CapabilityRejected"}
_HELD = {**_REJECTED, "DetailType": "CapabilityHeld"}
_CHANGED = {"Source": "mats.maintenance", "DetailType": "CapabilityChanged"}
_REPORTED = {"Source": "mats.maintenance", "DetailType": "OutcomeReported"}
_FROM_STREAM = {
    "Registry": {**_CHANGED, "Source": "mats.registry"},
    "Trust": {**_CHANGED, "Source": "mats.registry"},
    "Outcomes": {**_REPORTED, "Source": "mats.outcomes"},
}
"""By the last part of the table's name."""
_BATCH = 10
_MAX_ERROR_BYTES = 16_000  # All entries of a call together may have 256 KB
TIMEOUT_S, ATTEMPTS = 5, 3


class EventBus:
    """An EventBridge bus.

    Every call raises DependencyFailed if the bus did not accept all events; some may be on it.
    """

    def __init__(self, name: str, **options: Any) -> None:
        """Make the client, with options (region and session) and errors of `aws.client`; makes no call."""
        self._name = name
        self._client = client("events", timeout_s=TIMEOUT_S, attempts=ATTEMPTS, connections=2, **options)

    def announce_rejections(self, profiles: Sequence[Profile]) -> None:
        """Put one event per rejected or held profile on the bus."""
        self._put(map(self._rejection, profiles))

    def _rejection(self, profile: Profile) -> dict[str, str]:
        if profile.held:
            held = {"digest": profile.held.digest, "changes": profile.held.changes}
            return _event(_HELD, {"id": profile.id, **held})
        return _event(_REJECTED, {"id": profile.id, "error": truncate_json(profile.error, _MAX_ERROR_BYTES)})

    def send_changes(self, ids: Sequence[Id]) -> None:
        """Put a change of each on the bus, as the streams' function does: with its key and no content."""
        changes = ({"table": "Registry", "change": "RESEND", "keys": key_of(id)} for id in ids)
        self._put([_event(_CHANGED, change) for change in changes])

    def send_reports(self, query_ids: Sequence[str]) -> None:
        """Put what was reported on each of these answers on the bus again, for the memory to learn it."""
        rows = ({"table": "Outcomes", "change": "RESEND", "keys": {"query_id": {"S": id}}} for id in query_ids)
        self._put([_event(_REPORTED, row) for row in rows])

    def send_namespace_change(self, change: NamespaceChange) -> None:
        """Put the change of a namespace's row on the bus, as the streams' function does, to go on after an id."""
        detail = {"table": "Trust", "change": "RESEND", "keys": key_of(pattern_id(change.namespace))}
        self._put([_event(_CHANGED, {**detail, "after": change.after})])

    def forward(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Put an event per record of a table's stream on the bus: with its key and no content."""
        self._put(stream_events(self._name, records))

    def _put(self, entries: Iterable[dict[str, str]]) -> None:
        waiting = ({"EventBusName": self._name, **entry} for entry in entries)
        while batch := list(islice(waiting, _BATCH)):
            answer = call(f"bus {self._name}", partial(self._client.put_events, Entries=batch))
            if "FailedEntryCount" not in answer:
                raise unexpected_response(f"bus {self._name}")
            if answer["FailedEntryCount"]:
                raise DependencyFailed(f"bus {self._name} rejected {answer['FailedEntryCount']} of the events")


def stream_events(bus: str, records: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """An event for each record of the streams of Registry, Trust and Outcomes, as Lambda hands them to a function."""
    found = []
    for record in records:
        table = record["eventSourceARN"].partition(":table/")[2].partition("/")[0].rpartition("-")[2].capitalize()
        row = {"table": table, "change": record["eventName"], "keys": record["dynamodb"]["Keys"]}
        found.append({"EventBusName": bus, **_event(_FROM_STREAM[table], row)})
    return found


def _event(kind: Mapping[str, str], detail: Mapping[str, object]) -> dict[str, str]:
    return {**kind, "Detail": json.dumps(detail, ensure_ascii=False)}
