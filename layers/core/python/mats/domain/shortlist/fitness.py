"""Judge whether a caller can call a capability with what it holds."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.protocols.authentication import AuthScheme, auth_from_list
from mats.domain.protocols.descriptors import READS
from mats.domain.ranking.query import Holds


@dataclass(frozen=True, slots=True)
class Fitness:
    """Judges capabilities for one request; `excluded` collects those that it asked to leave out, with the reason."""

    holds: Holds
    excluded: dict[Id, str]

    def because(self, profile: Profile) -> str:
        """Why the caller cannot call a capability; empty if nothing is known against it."""
        call: Mapping[str, Any] = json.loads(profile.invocation or "{}")
        if not call:
            return "its owner gave no way to call it"
        ways = [call["protocol"], *filter(None, [call.get("transport")])]
        if self.holds.transports is not None and not {*ways} & {*self.holds.transports}:
            return f"is called over {'/'.join(ways)}"
        if self.holds.read_only and READS not in profile.effects:
            return "is not said to be read-only"
        return "" if self.holds.auth is None else _lacks_auth(call, profile, self.holds.auth)

    def admits(self, profile: Profile) -> bool:
        """False for what the request asks to leave out, since its caller cannot call it."""
        if not self.holds.leave_out or not (because := self.because(profile)):
            return True
        self.excluded[profile.id] = because
        return False


def _lacks_auth(call: Mapping[str, Any], profile: Profile, auth: Sequence[str]) -> str:
    split = (one.partition("@") for one in auth)
    here = f"{profile.namespace}."
    held = {scheme for scheme, sign, place in split if not sign or here.startswith(f"{place}.")}
    needed = _options(auth_from_list(call.get("auth")))
    if not any(option <= held for option in needed):
        return f"needs {' or '.join(' and '.join(sorted(option)) for option in needed)}"
    return ""


def _options(auth: Sequence[AuthScheme]) -> list[frozenset[str]]:
    """The schemes of each alternative; one without any, if none is needed."""
    numbers: list[int | None] = [*dict.fromkeys(each.option for each in auth if each.option is not None)] or [None]
    return [frozenset(each.scheme for each in auth if each.option in (None, number)) - {"none"} for number in numbers]
