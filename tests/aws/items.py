"""The size of an item as DynamoDB counts it, and its limit."""

from collections.abc import Mapping
from typing import Any

MAX_BYTES = 400 * 1024


def item_bytes(row: Mapping[str, Any]) -> int:
    """The bytes of a typed item: names and values, with three for each list and map and one for each of its parts."""
    return sum(len(name.encode()) + _value_bytes(typed) for name, typed in row.items())


def _value_bytes(typed: Mapping[str, Any]) -> int:
    ((kind, value),) = typed.items()
    match kind:
        case "S":
            return len(value.encode())
        case "B":
            return len(value)
        case "N":
            return len(value.lstrip("-0.")) // 2 + 2
        case "L":
            return 3 + sum(1 + _value_bytes(each) for each in value)
        case "M":
            return 3 + len(value) + item_bytes(value)
        case "BOOL" | "NULL":
            return 1
    raise ValueError(kind)
