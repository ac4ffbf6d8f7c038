"""Access to JSON values of unknown shape."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A JSON value."""

_WEIGHT = 100
"""Characters that take as long as one value, whatever it is."""


def first_of(value: Json) -> Json:
    """The first entry of a list; any other value itself."""
    return value[0] if isinstance(value, list) and value else value


def value_at(value: object, *path: str) -> Any:
    """The value at a path of keys; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def text_at(value: object, *path: str) -> str:
    """The text at a path of keys, trimmed, or a number as text; empty for anything else."""
    found = value_at(value, *path)
    if isinstance(found, int | float) and not isinstance(found, bool):
        return str(found)
    return found.strip() if isinstance(found, str) else ""


def objects(value: object) -> Sequence[Mapping[str, Any]]:
    """The objects in a list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list | tuple) else []


def weight(value: Json, most: int) -> int:
    """The work of handling a value: 100 for each value in it, and its characters; counting ends above `most`."""
    total, waiting = 0, [value]
    while waiting and total <= most:
        one = waiting.pop()
        total += _WEIGHT
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, dict):
            total += sum(map(len, map(str, one)))
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return total
