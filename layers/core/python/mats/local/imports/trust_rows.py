"""Rows of trust among lines of registrations: `{"trust": {"id": "com.acme/refund", "trust": 80}}`.

`mats export` writes them and `mats import --with-trust` assigns them. A registration cannot carry trust, since owners
write registrations and operators assign trust.
"""

from collections.abc import Mapping
from typing import Any

from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, RegistrationInvalid
from mats.domain.profile.assignment import Assigned, namespace_of_pattern, parse_row, parse_target
from mats.local.imports.formats import Json

_KEY = "trust"
_ATTRIBUTES = ("id", "trust", "provider")


def is_trust(value: object) -> bool:
    """Whether a line is a row of trust."""
    return isinstance(value, Mapping) and value.keys() == {_KEY} and isinstance(value[_KEY], Mapping)


def to_line(key: Id, assigned: Assigned) -> dict[str, Any]:
    """The line of a row; the id of a namespace's row is spelled as for `mats trust`: `com.acme.*`."""
    namespace = namespace_of_pattern(key)
    row: dict[str, Any] = {"id": key if namespace is None else f"{namespace}.*"}
    if assigned.trust is not None:
        row["trust"] = assigned.trust
    if assigned.provider:
        row["provider"] = assigned.provider
    return {_KEY: row}


def parse(value: Json) -> tuple[Id, Assigned]:
    """The key and the content of a row.

    Raises:
        RegistrationInvalid: with every fault.
    """
    row: Mapping[str, Any] = value[_KEY]
    faults = [Fault(f"trust.{name}", "is not a known attribute") for name in sorted(row.keys() - {*_ATTRIBUTES})]
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
