"""Announcing rejected registrations on an EventBridge bus."""

import json
from collections.abc import Sequence
from functools import partial
from itertools import islice

from boto3.session import Session

from mats.adapters.aws import call, client, unexpected_response
from mats.domain.errors import DependencyFailed
from mats.domain.profile import Profile
from mats.domain.truncate import truncate_json

_SOURCE, _TYPE = "mats.enrichment", "CapabilityRejected"
_BATCH = 10
_MAX_ERROR_BYTES = 16_000
"""All entries of a call together may have 256 KB."""
TIMEOUT_S, ATTEMPTS = 5, 3


class EventBus:
    """An EventBridge bus."""

    def __init__(self, name: str, *, region: str = "", session: Session | None = None) -> None:
        """Make the client, of this session if one is given; makes no call."""
        self._name = name
        self._client = client(
            "events", region=region, timeout_s=TIMEOUT_S, attempts=ATTEMPTS, connections=2, session=session
        )

    def announce_rejections(self, profiles: Sequence[Profile]) -> None:
        """Put one event per rejected profile on the bus.

        Raises:
            DependencyFailed: the bus did not accept all of them; some may be announced.
        """
        waiting = iter(profiles)
        while batch := list(islice(waiting, _BATCH)):
            answer = call(f"bus {self._name}", partial(self._client.put_events, Entries=[*map(self._entry, batch)]))
            if "FailedEntryCount" not in answer:
                raise unexpected_response(f"bus {self._name}")
            if answer["FailedEntryCount"]:
                raise DependencyFailed(f"bus {self._name} rejected {answer['FailedEntryCount']} of the events")

    def _entry(self, profile: Profile) -> dict[str, str]:
        detail = {"id": profile.id, "error": truncate_json(profile.error, _MAX_ERROR_BYTES)}
        text = json.dumps(detail, ensure_ascii=False)
        return {"EventBusName": self._name, "Source": _SOURCE, "DetailType": _TYPE, "Detail": text}
