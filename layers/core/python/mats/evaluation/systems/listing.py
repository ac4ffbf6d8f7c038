"""How baselines show capabilities to a model: as data that cannot leave its fence."""

from collections.abc import Sequence

from mats.domain.fence import encoded, visible
from mats.domain.registration import Registration


def alphabetical(registrations: Sequence[Registration]) -> list[Registration]:
    """By name, case ignored; equal names by id."""
    return sorted(registrations, key=lambda r: (r.name.casefold(), r.id))


def line(number: int, registration: Registration, *, most: int | None = None) -> str:
    """A number, and as a JSON text the name and the beginning of the description, whitespace collapsed.

    Args:
        number: By which a model refers to it.
        registration: What is shown.
        most: Characters of the description; default: all of them.
    """
    described = visible(registration.description)[:most]
    return (
        f"{number} {encoded(f'{visible(registration.name)}: {described}' if described else visible(registration.name))}"
    )
