"""JSON values as DynamoDB's typed values, and back. Standard library only: `mats import --to-items` needs no boto3."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]
"""An item as the service stores it: attribute name to typed value, such as `{"S": "text"}`."""

_MAX_DIGITS = 38
_MAX_EXPONENT, _MIN_EXPONENT = 125, -130


class NotStorable(ValueError):
    """DynamoDB cannot store the item; the message names the value."""


def to_row(item: Mapping[str, Any]) -> dict[str, Any]:
    """Type the attributes of an item; an attribute that is None is left out.

    Raises:
        NotStorable: it contains a number or an empty name that DynamoDB cannot store, or a value that is not JSON.
    """
    return {name: _to_typed(value) for name, value in item.items() if value is not None}


def from_row(row: Row) -> dict[str, Any]:
    """The item of a row; sets become sorted lists, binary values bytes."""
    return {name: _from_typed(value) for name, value in row.items()}


def _to_typed(value: object) -> dict[str, Any]:
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() | float():
            return {"N": _to_number(value)}
        case Mapping():
            if "" in value:
                raise NotStorable("contains an entry with an empty name, which DynamoDB cannot store")
            return {"M": {str(key): _to_typed(inner) for key, inner in value.items()}}
        case list() | tuple():
            return {"L": [_to_typed(inner) for inner in value]}
        case _:
            raise NotStorable(f"contains a {type(value).__name__}, which JSON does not have")


def _to_number(value: float) -> str:
    number = Decimal(repr(value))
    exponent = number.adjusted() if number else 0
    digits = len(number.as_tuple().digits)
    if not number.is_finite() or digits > _MAX_DIGITS or not _MIN_EXPONENT <= exponent <= _MAX_EXPONENT:
        raise NotStorable(
            "contains a number with more than 38 digits, beyond 1E125 or nearer to 0 than 1E-130, "
            "which DynamoDB cannot store"
        )
    return str(number)


def _from_typed(typed: Row) -> Any:
    ((kind, value),) = typed.items()
    return _READERS[kind](value) if kind in _READERS else value


def _from_number(text: str) -> int | float:
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else float(number)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "NULL": lambda value: None,
    "N": _from_number,
    "M": from_row,
    "L": lambda values: [_from_typed(value) for value in values],
    "NS": lambda values: sorted(map(_from_number, values)),
    "SS": sorted,
    "BS": sorted,
}
