"""Items as request files for `aws dynamodb batch-write-item`."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from mats.domain.errors import Fault, RequestInvalid
from mats.ports import Item

_PER_REQUEST = 25
"""Items that one BatchWriteItem takes. It takes 16 MB, and 25 items have 10 MB at most."""


def write_requests(items: Sequence[Item], table: str, folder: Path) -> int:
    """Write items as numbered files, each the `--request-items` of one `aws dynamodb batch-write-item`; how many.

    Raises:
        RequestInvalid: the folder cannot be written, or holds files already, or DynamoDB could not hold an item.
    """
    rows = _rows(items)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RequestInvalid([Fault("--to-items", f"{folder} must be empty or not there")])
        batches = [rows[start : start + _PER_REQUEST] for start in range(0, len(rows), _PER_REQUEST)]
        for number, batch in enumerate(batches, start=1):
            requests = {table: [{"PutRequest": {"Item": row}} for row in batch]}
            (folder / f"{number:05}.json").write_text(json.dumps(requests, ensure_ascii=False) + "\n", "utf-8")
    except OSError as error:
        raise RequestInvalid([Fault("--to-items", f"{folder} cannot be written: {error.strerror or error}")]) from error
    return len(batches)


def _rows(items: Sequence[Item]) -> list[dict[str, Any]]:
    rows, faults = [], []
    for item in items:
        try:
            rows.append(typed(item)["M"])
        except ValueError as error:
            faults.append(Fault(f"{item['namespace']}/{item['name']}", str(error)))
    if faults:
        raise RequestInvalid(faults)
    return rows


def typed(value: object) -> dict[str, Any]:
    """A JSON value as DynamoDB's own JSON has it.

    Raises:
        ValueError: DynamoDB cannot hold it; the message says why.
    """
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() | float():
            return {"N": _number(value)}
        case Mapping():
            if "" in value:
                raise ValueError("holds an entry with an empty name: DynamoDB cannot keep it")
            return {"M": {str(key): typed(inner) for key, inner in value.items()}}
        case list() | tuple():
            return {"L": [typed(inner) for inner in value]}
        case _:
            raise ValueError(f"holds a {type(value).__name__}, which is none of JSON's")


def _number(value: float) -> str:
    number = Decimal(repr(value))
    digits = len(number.as_tuple().digits)
    if not number.is_finite() or digits > 38 or (number and not -130 <= number.adjusted() <= 125):
        raise ValueError("holds a number with more than 38 digits, beyond 1E125 or nearer to 0 than 1E-130")
    return str(number)
