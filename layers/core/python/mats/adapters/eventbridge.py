"""The bus that hears of rejected registrations."""

import json
from collections.abc import Sequence
from functools import partial
from itertools import islice

from boto3.session import Session

from mats.adapters.aws import call, client, unexpected_response
from mats.domain.errors import DependencyFailed
from mats.domain.fence import fitted
from mats.domain.profile import Profile

_SOURCE, _TYPE = "mats.enrichment", "CapabilityRejected"
_AT_ONCE = 10
_LONGEST_ERROR = 16_000
"""Bytes; all entries of a call together may have 256 KB."""
_TIMEOUT_S = 5


class EventBus:
    """A bus of EventBridge, by name."""

    def __init__(self, name: str, *, region: str = "", session: Session | None = None) -> None:
        """Make the client, of this session if one is given; no call is made."""
        self._name = name
        self._client = client("events", region=region, timeout_s=_TIMEOUT_S, attempts=3, connections=2, session=session)

    def rejected(self, profiles: Sequence[Profile]) -> None:
        """Announce rejections.

        Raises:
            DependencyFailed: the bus did not take all of them; some may be announced.
        """
        waiting = iter(profiles)
        while batch := list(islice(waiting, _AT_ONCE)):
            answer = call(f"bus {self._name}", partial(self._client.put_events, Entries=[*map(self._entry, batch)]))
            if "FailedEntryCount" not in answer:
                raise unexpected_response(f"bus {self._name}")
            if answer["FailedEntryCount"]:
                raise DependencyFailed(f"bus {self._name} did not take {answer['FailedEntryCount']} rejections")

    def _entry(self, profile: Profile) -> dict[str, str]:
        detail = {"id": profile.id, "error": fitted(profile.error, _LONGEST_ERROR)}
        told = json.dumps(detail, ensure_ascii=False)
        return {"EventBusName": self._name, "Source": _SOURCE, "DetailType": _TYPE, "Detail": told}
