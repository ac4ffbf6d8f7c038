"""Claimed providers: the name that an owner wrote, where operators have verified it for someone else."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.text.lookalikes import skeleton
from mats.domain.text.text import split_identifier

_GENERIC = frozenset(
    skeleton(word)
    for word in (
        "ab ag api apis as bv by co com company corp corporation dev from gmbh group holding holdings hq http https "
        "inc incorporated int international io kg limited llc llp ltd mcp net nv official org oy platform plc pte pty "
        "sa sas server servers spa srl support team the verified www"
    ).split()
)
"""Legal forms, ends of host names, and what else makes no other provider of a name."""
_WORD = re.compile(r"\w+")
_INITIAL = re.compile(r"\b(\w)\.(?=\w\b)")
"""Of an abbreviation such as L.L.C."""
_CACHED = 4_096


@lru_cache(maxsize=_CACHED)
def provider_key(name: str) -> str:
    """A key that names people take for one provider share: `Stripe`, `STRIPE, Inc.`, `stripe.com`, `Ѕtripe™`."""
    plain = "".join(" " if _is_sign(c) else c for c in name)
    words = _WORD.findall(skeleton(split_identifier(_INITIAL.sub(r"\1", plain))))
    return "".join([word for word in words if word not in _GENERIC] or words)


def _is_sign(character: str) -> bool:
    """Whether a character is a symbol such as `™` or `+`, and no letter in a circle or box, such as `Ⓢ`."""
    if not unicodedata.category(character).startswith("S"):
        return False
    seen = skeleton(character)
    return character.isascii() or len(seen) != 1 or not seen.isalpha()


def claims(profiles: Iterable[Profile]) -> Mapping[Id, tuple[Profile, ...]]:
    """The profiles with an unverified provider that is verified for others among them, each with these others."""
    known = [(provider_key(profile.provider), profile) for profile in profiles if profile.provider]
    verified: dict[str, tuple[Profile, ...]] = {}
    for key, profile in known:
        if profile.provider_verified:
            verified[key] = (*verified.get(key, ()), profile)
    return {profile.id: verified[key] for key, profile in known if key in verified and not profile.provider_verified}


def claim_reason(verified: Profile) -> str:
    """Why a capability that claims the provider of this one is suspicious."""
    return f"claims the provider {verified.provider}, which is verified for the namespace {verified.namespace}"
