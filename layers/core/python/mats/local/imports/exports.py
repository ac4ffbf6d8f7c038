"""The lines of an export that no owner writes: rows of trust, and profiles of what waits for an operator.

`mats export` writes them and `mats import --with-trust` reads them. A registration cannot carry trust, since owners
write registrations and operators assign trust.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import ValidationError

from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, RegistrationInvalid
from mats.domain.profile.assignment import Assigned, namespace_of_pattern, parse_row, parse_target
from mats.domain.profile.profile import Profile, parse_profile
from mats.domain.protocols.values import Json, text_at

_TRUST, _HELD = "trust", "held"
_TRUST_ATTRIBUTES = ("id", *(each.name for each in fields(Assigned)))
_MADE_ELSEWHERE = {"rev", "indexed_rev", "cause", "content", "encoder"}
"""Attributes of a profile that belong to the registry that it is in."""


def is_trust_row(value: object) -> bool:
    """True for `{"trust": {"id": "com.acme/refund", "trust": 80}}`."""
    return isinstance(value, Mapping) and value.keys() == {_TRUST} and isinstance(value[_TRUST], Mapping)


def is_held_line(value: object) -> bool:
    """True for `{"held": …}` with a profile, which is shown while the registration of a later line waits."""
    return isinstance(value, Mapping) and value.keys() == {_HELD} and isinstance(value[_HELD], Mapping)


def held_line(profile: Profile) -> dict[str, Any]:
    """The line of a profile that waits for an operator."""
    return {_HELD: profile.model_dump(mode="json", exclude=_MADE_ELSEWHERE, exclude_defaults=True)}


def held_id(value: Json) -> str:
    """The id of a line, also of one that is refused."""
    return f"{text_at(value, _HELD, 'namespace')}/{text_at(value, _HELD, 'name')}"


def parse_held(value: Json) -> Profile:
    """The profile of a line. Raises RegistrationInvalid: it is none, or holds nothing back."""
    try:
        profile = parse_profile(json.dumps(value[_HELD]))
    except ValidationError as error:
        first = error.errors()[0]
        raise RegistrationInvalid([Fault(".".join(map(str, (_HELD, *first["loc"]))), first["msg"])]) from error
    except ValueError as error:
        raise RegistrationInvalid([Fault(_HELD, f"has a part that cannot be used: {error}")]) from error
    if not profile.held_now:
        raise RegistrationInvalid(
            [Fault(_HELD, "must be a profile that waits for an operator, as `mats export` writes")]
        )
    return profile


def trust_line(key: Id, assigned: Assigned) -> dict[str, Any]:
    """The line of a row; the id of a namespace's row is spelled as for `mats trust`: `com.acme.*`."""
    namespace = namespace_of_pattern(key)
    return {_TRUST: {"id": key if namespace is None else f"{namespace}.*", **assigned.to_row()}}


def parse_trust(value: Json) -> tuple[Id, Assigned]:
    """The key and the content of a row. Raises RegistrationInvalid: with every fault."""
    row: Mapping[str, Any] = value[_TRUST]
    faults = [Fault(f"trust.{name}", "is not a known attribute") for name in sorted(row.keys() - {*_TRUST_ATTRIBUTES})]
    assigned, key = parse_row(row), Id("")
    try:
        key = parse_target(str(row.get("id", "")))
    except ValueError as error:
        faults.append(Fault("trust.id", str(error)))
    if row.get("trust") != assigned.trust:
        faults.append(Fault("trust.trust", "must be a whole number from 0 to 100"))
    if row.get("provider", "") != assigned.provider:
        faults.append(Fault("trust.provider", "must be a name of visible characters on one line"))
    elif assigned.provider and key and namespace_of_pattern(key) is None:
        faults.append(Fault("trust.provider", "is verified for a namespace, not for a capability"))
    if faults or not assigned:
        raise RegistrationInvalid(faults or [Fault("trust", "must hold `trust` or `provider`")])
    return key, assigned
