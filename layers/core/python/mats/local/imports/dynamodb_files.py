"""Items as request files for `aws dynamodb batch-write-item`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mats.bootstrap import dynamodb_row
from mats.domain.errors import Fault, NotPossible
from mats.ports import Item

_PER_REQUEST = 25
"""Maximum of one BatchWriteItem. Its other limit is 16 MB, and 25 items have 10 MB at most."""


def write_requests(items: Sequence[Item], table: str, folder: Path) -> int:
    """Write items as numbered files, each the `--request-items` of one `aws dynamodb batch-write-item`; their number.

    Raises:
        NotPossible: the folder cannot be written, or holds files already, or DynamoDB could not hold an item.
    """
    rows = _rows(items)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise NotPossible([Fault("--to-items", f"{folder} must be empty or not exist")])
        batches = [rows[start : start + _PER_REQUEST] for start in range(0, len(rows), _PER_REQUEST)]
        for number, batch in enumerate(batches, start=1):
            requests = {table: [{"PutRequest": {"Item": row}} for row in batch]}
            (folder / f"{number:05}.json").write_text(json.dumps(requests, ensure_ascii=False) + "\n", "utf-8")
    except OSError as error:
        raise NotPossible([Fault("--to-items", f"{folder} cannot be written: {error.strerror or error}")]) from error
    return len(batches)


def _rows(items: Sequence[Item]) -> list[dict[str, Any]]:
    rows, faults = [], []
    for item in items:
        try:
            rows.append(dynamodb_row(item))
        except ValueError as error:
            faults.append(Fault(f"{item['namespace']}/{item['name']}", str(error)))
    if faults:
        raise NotPossible(faults)
    return rows
