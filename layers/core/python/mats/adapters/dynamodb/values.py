"""Between DynamoDB's typed values and JSON's."""

from collections.abc import Mapping
from decimal import Decimal, DecimalException
from typing import Any

from boto3.dynamodb.types import DYNAMODB_CONTEXT, Binary, TypeDeserializer, TypeSerializer

_READER, _WRITER = TypeDeserializer(), TypeSerializer()

Row = Mapping[str, Any]
"""An item as the service has it: attribute to typed value."""


class ValueTooLong(ValueError):
    """A number has more digits, or is further from 1, than DynamoDB can keep."""


def plain(row: Row) -> dict[str, Any]:
    """The item as JSON would have it; sets become lists in a fixed order, binary values bytes."""
    return {name: _plain(_READER.deserialize(value)) for name, value in row.items()}


def typed(item: Mapping[str, Any]) -> dict[str, Any]:
    """The item as the service wants it; attributes that are None are left out.

    Raises:
        ValueTooLong: it holds a number that DynamoDB cannot keep.
    """
    try:
        return {name: _WRITER.serialize(_storable(value)) for name, value in item.items() if value is not None}
    except DecimalException as error:
        raise ValueTooLong(
            "holds a number with more than 38 digits or beyond 1E125, which DynamoDB cannot keep"
        ) from error


def _plain(value: object) -> Any:
    match value:
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case Binary():
            return bytes(value)
        case dict():
            return {key: _plain(inner) for key, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
        case set():
            return sorted(_plain(inner) for inner in value)
        case _:
            return value


def _storable(value: object) -> object:
    match value:
        case float():
            return DYNAMODB_CONTEXT.create_decimal(repr(value))
        case Mapping():
            return {str(key): _storable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_storable(inner) for inner in value]
        case _:
            return value
