"""Rows brought from one table to another, in another region or by way of a file.

A file has a JSON object on each line with the typed row in `Item`, as what DynamoDB exports to S3, unpacked.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from mats.adapters.dynamodb.tables import Row, Tables
from mats.adapters.sqlite.home import replacing
from mats.domain.errors import Fault, NotPossible

_AT_ONCE = 1_000
_FILE = ".jsonl"
_OF_A_DEPLOYMENT = "~system"
"""Rows of Profiles in this namespace are about the indices of one domain."""


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
    if source.endswith(_FILE):
        rows = parse_lines(Path(source))
    else:
        region, _, name = source.rpartition(":")
        rows = rows_of(tables(region), name)
    if target.endswith(_FILE):
        yield from _write_lines(Path(target), rows)
    else:
        region, _, name = target.rpartition(":")
        yield from CopyRows(tables(region), name, replace)(rows)


def _write_lines(file: Path, rows: Iterator[Row]) -> Iterator[CopyStep]:
    try:
        with replacing(file) as partial, partial.open("w", encoding="utf-8") as out:
            while page := list(islice(rows, _AT_ONCE)):
                out.writelines(map(write_line, page))
                yield CopyStep(len(page), 0)
    except OSError as error:
        raise NotPossible([Fault("TO", f"{file} cannot be written: {error.strerror}")]) from error


@dataclass(frozen=True, slots=True)
class CopyRows:
    """Write rows to a table."""

    tables: Tables
    table: str
    replace: bool = False

    def __call__(self, rows: Iterable[Row]) -> Iterator[CopyStep]:
        schema = self.tables.ask(self.table, "describe_table")["Table"]["KeySchema"]
        absent = {
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": schema[0]["AttributeName"]},
        }
        condition: Mapping[str, Any] = {} if self.replace else absent
        remaining = iter(rows)
        while page := list(islice(remaining, _AT_ONCE)):
            written = sum(self.tables.map(lambda row: self._put(row, condition), page))
            yield CopyStep(written, len(page) - written)

    def _put(self, row: Row, condition: Mapping[str, Any]) -> bool:
        try:
            self.tables.ask(self.table, "put_item", Item=row, **condition)
        except ClientError:
            return False
        return True


def rows_of(tables: Tables, table: str) -> Iterator[Row]:
    """Every row of a table, but those about the deployment's own domain."""
    rows = tables.all_rows(table, "scan", ConsistentRead=True)
    return (row for row in rows if row.get("namespace") != {"S": _OF_A_DEPLOYMENT})


def write_line(row: Row) -> str:
    """The line of a row."""
    return json.dumps({"Item": row}, default=lambda binary: base64.b64encode(bytes(binary)).decode()) + "\n"


def parse_lines(file: Path) -> Iterator[Row]:
    """The rows of a file.

    Raises:
        NotPossible: it cannot be read, or a line is no row.
    """
    number = 0
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):  # noqa: B007 - for the message
                yield _map_binary(json.loads(line)["Item"])
    except OSError as error:
        raise NotPossible([Fault("FROM", f"{file} cannot be read: {error.strerror}")]) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        where = f"line {number} of {file} is no row of DynamoDB"
        raise NotPossible(
            [Fault("FROM", f"{where}: give a file that this command or an export to S3 wrote")]
        ) from error


def _map_binary(row: Mapping[str, Any]) -> Row:
    """A row with bytes for the text of binary values."""
    return {name: _value(value) for name, value in row.items()}


def _value(value: Mapping[str, Any]) -> Mapping[str, Any]:
    ((type, content),) = value.items()
    decode: Mapping[str, Callable[[Any], Any]] = {
        "B": base64.b64decode,
        "BS": lambda each: list(map(base64.b64decode, each)),
        "M": _map_binary,
        "L": lambda each: list(map(_value, each)),
    }
    return {type: decode[type](content) if type in decode else content}
