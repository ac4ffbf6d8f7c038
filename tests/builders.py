"""Valid things to start from; a test names only what it is about."""

from typing import Any

from mats.domain.profile import Enrichment, Profile, profile_of
from mats.domain.registration import Registration


def an_item(**overrides: Any) -> dict[str, Any]:
    """A Registry item as an owner writes it; an attribute set to None counts as absent."""
    return {
        "namespace": "com.acme.pay",
        "name": "refund_payment",
        "kind": "tool",
        "description": "Gives money back to the card it came from.",
        **overrides,
    }


def a_registration(**overrides: Any) -> Registration:
    """A valid registration."""
    return Registration.parse(an_item(**overrides))


def a_profile(
    *,
    trust: int | None = None,
    origin: str = "",
    enrichment: Enrichment | None = None,
    notes: tuple[str, ...] = (),
    **overrides: Any,
) -> Profile:
    """The profile of a registration with these overrides: raw, unless an enrichment is given."""
    return profile_of(a_registration(**overrides), trust=trust, origin=origin, enrichment=enrichment, notes=notes)
