"""Whether a capability can be called now: what its endpoint last showed of life, and what the caller holds."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.protocols.authentication import AuthScheme, auth_from_list
from mats.domain.protocols.descriptors import READS
from mats.domain.ranking.query import Holds

DEAD_MISSES, DEAD_AFTER = 3, timedelta(minutes=20)
"""Misses in a row, and the time from the first to the last of them, from which on an endpoint is dead."""


class Life(StrEnum):
    """What an endpoint showed when it was last looked at."""

    ALIVE = "alive"
    GATED = "gated"  # It is alive and asks for authentication
    MISSED = "missed"  # It did not answer by its protocol, but not often enough to be dead
    DEAD = "dead"


class Target(NamedTuple):
    """An endpoint, and how it is looked at: by the handshake of `mcp` or `a2a`, or by `head`."""

    method: str
    url: str


class Sighting(NamedTuple):
    """The result of one look: ALIVE, GATED or MISSED, and why."""

    life: Life
    because: str = ""


class Proof(NamedTuple):
    """The last proof of life: when, and the misses in a row up to then, with the time of the first (ISO 8601, UTC)."""

    life: Life
    at: str
    because: str = ""
    misses: int = 0
    since: str = ""

    def follow(self, seen: Sighting, at: str) -> "Proof":
        if seen.life is not Life.MISSED:
            return Proof(seen.life, at, seen.because)
        since, misses = self.since or at, self.misses + 1
        old = datetime.fromisoformat(at) - datetime.fromisoformat(since) >= DEAD_AFTER
        return Proof(Life.DEAD if misses >= DEAD_MISSES and old else Life.MISSED, at, seen.because, misses, since)

    def __str__(self) -> str:
        missed = f", {self.misses} misses in a row since {self.since[:16]}Z" if self.misses else ""
        return f"endpoint {self.life}: {self.because or 'it answered'}{missed}"


Proofs: TypeAlias = Mapping[Target, Proof]


def proofs_to_text(proofs: Proofs) -> str:
    """Proofs as JSON, those of endpoints that are not alive first, the latest first."""
    entries = sorted(proofs.items(), key=lambda each: each[1].at, reverse=True)
    entries.sort(key=lambda each: each[1].life is Life.ALIVE)
    return json.dumps([[*target, *proof] for target, proof in entries], ensure_ascii=False)


def proofs_from_text(text: str) -> dict[Target, Proof]:
    """The proofs of `proofs_to_text`; empty for an empty text."""
    rows = json.loads(text or "[]")
    return {Target(method, url): Proof(Life(life), *rest) for method, url, life, *rest in rows}


def target_of(profile: Profile) -> Target | None:
    """The endpoint of a capability; None if it has none on the web, or its address has to be filled in."""
    call = json.loads(profile.invocation or "{}")
    url, protocol = str(call.get("url", "")), call.get("protocol")
    if protocol == "http":
        start = url.partition("{")[0].partition("?")[0]  # up to the first parameter of the path
        return Target("head", start) if start.count("/") > 2 or start == url else None
    if not url or call.get("inputs"):
        return None
    if protocol == "mcp":
        return Target("mcp" if call.get("transport") == "streamable-http" else "head", url)
    spoken = protocol == "a2a" and str(call.get("transport", "JSONRPC")).upper() == "JSONRPC"
    return Target("a2a", url) if spoken else None


@dataclass(frozen=True, slots=True)
class Fitness:
    """Judges capabilities for one request; `excluded` collects those that it asked to leave out, with the reason."""

    holds: Holds | None
    proofs: Proofs
    excluded: dict[Id, str]

    def proof(self, profile: Profile) -> Proof | None:
        target = target_of(profile) if self.proofs else None
        return self.proofs.get(target) if target else None

    def because(self, profile: Profile, unwell: Collection[Life] = (Life.MISSED, Life.DEAD)) -> str:
        """Why a capability cannot be called now, with what the caller holds; empty if nothing is known against it."""
        proof = self.proof(profile)
        if self.holds and (lacks := _lacks(profile, self.holds, proof)):
            return lacks
        return str(proof) if proof and proof.life in unwell else ""

    def admits(self, profile: Profile) -> bool:
        """False for what the request asks to leave out: what its caller cannot call, and dead endpoints."""
        if self.holds is None or not self.holds.leave_out or not (because := self.because(profile, (Life.DEAD,))):
            return True
        self.excluded[profile.id] = because
        return False


def _lacks(profile: Profile, holds: Holds, proof: Proof | None) -> str:
    """What the caller lacks for a call; empty if nothing."""
    call: Mapping[str, Any] = json.loads(profile.invocation or "{}")
    if not call:
        return "its owner gave no way to call it"
    ways = [call["protocol"], *filter(None, [call.get("transport")])]
    if holds.transports is not None and not {*ways} & {*holds.transports}:
        return f"is called over {'/'.join(ways)}"
    if holds.read_only and READS not in profile.effects:
        return "is not said to be read-only"
    return "" if holds.auth is None else _lacks_auth(call, profile, holds.auth, proof)


def _lacks_auth(call: Mapping[str, Any], profile: Profile, auth: Sequence[str], proof: Proof | None) -> str:
    split = (one.partition("@") for one in auth)
    here = f"{profile.namespace}."
    held = {scheme for scheme, sign, place in split if not sign or here.startswith(f"{place}.")}
    needed = _options(auth_from_list(call.get("auth")))
    if not any(option <= held for option in needed):
        return f"needs {' or '.join(' and '.join(sorted(option)) for option in needed)}"
    if proof and proof.life is Life.GATED and not held:
        return f"asks for authentication: {proof.because}"
    return ""


def _options(auth: Sequence[AuthScheme]) -> list[frozenset[str]]:
    """The schemes of each alternative; one without any, if none is needed."""
    numbers: list[int | None] = [*dict.fromkeys(each.option for each in auth if each.option is not None)] or [None]
    return [frozenset(each.scheme for each in auth if each.option in (None, number)) - {"none"} for number in numbers]
