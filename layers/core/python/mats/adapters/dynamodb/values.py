"""Between DynamoDB's typed values and JSON's."""

from collections.abc import Mapping
from decimal import Decimal, DecimalException
from typing import Any

from boto3.dynamodb.types import DYNAMODB_CONTEXT, Binary, TypeDeserializer, TypeSerializer

_READER, _WRITER = TypeDeserializer(), TypeSerializer()
_FARTHEST, _NEAREST = 125, -130
"""Powers of ten between which a number must lie."""
_TOO_LONG = "holds a number with more than 38 digits, beyond 1E125 or nearer to 0 than 1E-130: DynamoDB cannot keep it"

Row = Mapping[str, Any]
"""An item as the service has it: attribute to typed value."""


class NotStorable(ValueError):
    """DynamoDB cannot keep it; the message says what."""


def plain(row: Row) -> dict[str, Any]:
    """The item as JSON would have it; sets become lists in a fixed order, binary values bytes."""
    return {name: _plain(_READER.deserialize(value)) for name, value in row.items()}


def typed(item: Mapping[str, Any]) -> dict[str, Any]:
    """The item as the service wants it; attributes that are None are left out.

    Raises:
        NotStorable: it holds a number or an empty name that DynamoDB cannot keep.
    """
    try:
        return {name: _WRITER.serialize(_storable(value)) for name, value in item.items() if value is not None}
    except DecimalException as error:
        raise NotStorable(_TOO_LONG) from error


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
        case bool():
            return value
        case float() | int():
            return _number(value)
        case Mapping():
            if "" in value:
                raise NotStorable("holds an entry with an empty name: DynamoDB cannot keep it")
            return {str(key): _storable(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_storable(inner) for inner in value]
        case _:
            return value


def _number(value: float) -> Decimal:
    number: Decimal = DYNAMODB_CONTEXT.create_decimal(repr(value) if isinstance(value, float) else value)
    if number and not _NEAREST <= number.adjusted() <= _FARTHEST:
        raise NotStorable(_TOO_LONG)
    return number
