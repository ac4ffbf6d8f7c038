"""Rows brought from one table to another, in another region or by way of a file.

A file has a JSON object on each line with the typed row in `Item`, as what DynamoDB exports to S3, unpacked.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from mats.adapters.dynamodb.tables import Row, Tables
from mats.adapters.sqlite.home import replacing
from mats.domain.errors import Fault, NotPossible

_AT_ONCE = 1_000
_FILE = ".jsonl"
_OF_A_DEPLOYMENT = {"S": "~system"}  # The namespace of rows of Profiles that are about the indices of one domain


class CopyStep(NamedTuple):
    """Rows written, and rows whose key the table has already."""

    written: int
    kept: int


def copy_rows(source: str, target: str, *, replace: bool, tables: Callable[[str], Tables]) -> Iterator[CopyStep]:
    """Copy every row; source and target are `TABLE`, `REGION:TABLE` or a file whose name ends in `.jsonl`.

    Args:
        source: Its rows about indices are left out: they belong to the domain of their deployment.
        target: A file is written anew. In a table a row whose key is there stays, unless `replace`; repeat at will.
        replace: Overwrite such a row.
        tables: Opens the tables of a region; an empty one is that of the AWS settings.

    Raises:
        NotPossible: the file cannot be read or written, or is none.
        DependencyFailed: a table did not answer; repeat it.
    """
    region, _, name = source.rpartition(":")
    rows = (
        _parse_lines(Path(source))
        if source.endswith(_FILE)
        else tables(region).all_rows(name, "scan", ConsistentRead=True)
    )
    own = (row for row in rows if row.get("namespace") != _OF_A_DEPLOYMENT)
    region, _, name = target.rpartition(":")
    return _write(Path(target), own) if target.endswith(_FILE) else _put_all(tables(region), name, own, replace=replace)


def _put_all(tables: Tables, table: str, rows: Iterator[Row], *, replace: bool) -> Iterator[CopyStep]:
    schema = tables.ask(table, "describe_table")["Table"]["KeySchema"]
    names = {"#key": schema[0]["AttributeName"]}

    def put(row: Row) -> bool:
        if replace:
            return bool(tables.ask(table, "put_item", Item=row))
        absent = "attribute_not_exists(#key)"
        return tables.ask_if(table, "put_item", absent, Item=row, ExpressionAttributeNames=names) is not None

    while page := list(islice(rows, _AT_ONCE)):
        written = sum(tables.map(put, page))
        yield CopyStep(written, len(page) - written)


def _write(file: Path, rows: Iterator[Row]) -> Iterator[CopyStep]:
    try:
        with replacing(file) as partial, partial.open("w", encoding="utf-8") as out:
            while page := list(islice(rows, _AT_ONCE)):
                lines = (
                    json.dumps({"Item": row}, default=lambda held: base64.b64encode(held).decode()) for row in page
                )
                out.writelines(f"{line}\n" for line in lines)
                yield CopyStep(len(page), 0)
    except OSError as error:
        raise NotPossible([Fault("TO", f"{file} cannot be written: {error.strerror}")]) from error


def _parse_lines(file: Path) -> Iterator[Row]:
    number = 0
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):  # noqa: B007 - for the message
                yield _decode({"M": json.loads(line)["Item"]})["M"]
    except OSError as error:
        raise NotPossible([Fault("FROM", f"{file} cannot be read: {error.strerror}")]) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        where = f"line {number} of {file} is no row of DynamoDB"
        raise NotPossible(
            [Fault("FROM", f"{where}: give a file that this command or an export to S3 wrote")]
        ) from error


def _decode(value: Mapping[str, Any]) -> dict[str, Any]:
    """A typed value of a file, with bytes for the text of binary ones."""
    ((type, held),) = value.items()
    match type:
        case "B":
            held = base64.b64decode(held)
        case "BS":
            held = list(map(base64.b64decode, held))
        case "L":
            held = list(map(_decode, held))
        case "M":
            held = {name: _decode(each) for name, each in held.items()}
    return {type: held}
