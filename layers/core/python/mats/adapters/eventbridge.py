"""Events on an EventBridge bus: of changed rows, of rejected registrations, and what maintenance sends again."""

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mats.adapters.aws import call, client, unexpected_response
from mats.adapters.dynamodb.tables import key_of
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import pattern_id

if TYPE_CHECKING:  # not for the streams function
    from mats.domain.profile.profile import Profile
    from mats.ports import NamespaceChange

LOGGER = logging.getLogger("mats")

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
_BATCH = 10  # All entries of a call together may have 256 KB: `MAX_NOTE_BYTES`
TIMEOUT_S, ATTEMPTS = 5, 3  # Of a call, and of a single event that the bus refuses
_PAUSE_S = 0.1  # Before a refused event is sent again, the first time


class EventBus:
    """An EventBridge bus.

    Every call raises DependencyFailed if the bus did not accept all events; some may be on it.
    """

    def __init__(self, name: str, **options: Any) -> None:
        """Make the client, with options (region and session) and errors of `aws.client`; makes no call."""
        self._name = name
        self._client = client("events", timeout_s=TIMEOUT_S, attempts=ATTEMPTS, connections=2, **options)

    def announce_rejections(self, profiles: "Sequence[Profile]") -> None:
        """Put one event per rejected or held profile on the bus."""
        self._put([self._rejection(profile) for profile in profiles])

    def _rejection(self, profile: "Profile") -> dict[str, str]:
        if held := profile.held_now:
            return _event(_HELD, {"id": profile.id, "digest": held.digest, "changes": held.changes})
        return _event(_REJECTED, {"id": profile.id, "error": profile.error})

    def send_changes(self, ids: Sequence[Id]) -> None:
        """Put a change of each on the bus, as the streams' function does: with its key and no content."""
        changes = ({"table": "Registry", "change": "RESEND", "keys": key_of(id)} for id in ids)
        self._put([_event(_CHANGED, change) for change in changes])

    def send_reports(self, query_ids: Sequence[str]) -> None:
        """Put what was reported on each of these answers on the bus again, for the memory to learn it."""
        rows = ({"table": "Outcomes", "change": "RESEND", "keys": {"query_id": {"S": id}}} for id in query_ids)
        self._put([_event(_REPORTED, row) for row in rows])

    def send_namespace_change(self, change: "NamespaceChange") -> None:
        """Put the change of a namespace's row on the bus, as the streams' function does, to go on after an id."""
        detail = {"table": "Trust", "change": "RESEND", "keys": key_of(pattern_id(change.namespace))}
        self._put([_event(_CHANGED, {**detail, "after": change.after})])

    def forward(self, records: Sequence[Mapping[str, Any]]) -> str | None:
        """Put an event per record of a table's stream on the bus: with its key and no content.

        If only the first ones were accepted: the sequence number of the record after them, to go on with.
        """
        sent, error = self._send(stream_events(self._name, records))
        if error and not sent:
            raise error
        LOGGER.info("forwarded", extra={"event": "forwarded", "sent": sent, "records": len(records)})
        if error:
            LOGGER.warning("%d records come again: %s", len(records) - sent, error)
        return str(records[sent]["dynamodb"]["SequenceNumber"]) if error else None

    def _put(self, events: Sequence[Mapping[str, str]]) -> None:
        _, error = self._send([{"EventBusName": self._name, **event} for event in events])
        if error:
            raise error

    def _send(self, entries: Sequence[Mapping[str, str]]) -> tuple[int, DependencyFailed | None]:
        """Send until there is an error: how many were accepted before it, and the error."""
        for start in range(0, len(entries), _BATCH):
            batch = entries[start : start + _BATCH]
            try:
                refused = self._send_batch(batch)
            except DependencyFailed as error:
                return start, error
            if refused:
                codes = ", ".join(sorted(set(refused.values())))
                reason = f"bus {self._name} refused {len(refused)} of {len(batch)} events: {codes}"
                return start + min(refused), DependencyFailed(reason)
        return len(entries), None

    def _send_batch(self, batch: Sequence[Mapping[str, str]]) -> Mapping[int, str]:
        """Send events, and those again that were refused; the codes of those refused to the last, by their positions.

        The service answers 200 for a call of which it throttles single events, so the SDK does not repeat them.
        """
        waiting, codes = dict(enumerate(batch)), dict[int, str]()
        for attempt in range(ATTEMPTS):
            time.sleep(_PAUSE_S * 2**attempt if attempt else 0)
            answer = call(f"bus {self._name}", partial(self._client.put_events, Entries=list(waiting.values())))
            results = answer.get("Entries", ())
            if len(results) != len(waiting):
                raise unexpected_response(f"bus {self._name}")
            codes = {
                at: str(each["ErrorCode"]) for at, each in zip(waiting, results, strict=True) if "ErrorCode" in each
            }
            if not codes:
                break
            waiting = {at: waiting[at] for at in codes}
        return codes


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
