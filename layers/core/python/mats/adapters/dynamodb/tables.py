"""A client of DynamoDB for all tables: batches, scans and transactions; and its typed values."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from botocore.exceptions import ClientError

from mats.adapters.aws import call, client, open_connection, unexpected_response
from mats.domain.capability.capability import Id, capability_id, parts
from mats.domain.errors import DependencyFailed

T = TypeVar("T")
R = TypeVar("R")
Row: TypeAlias = Mapping[str, Any]
"""An item as the service stores it: attribute name to typed value, such as `{"S": "text"}`."""

_BATCH = 100  # The most keys one BatchGetItem takes
BATCH_ATTEMPTS = 6  # Attempts for keys that a batch left unprocessed, with exponential backoff
FIRST_WAIT_S = 0.05
TIMEOUT_S, ATTEMPTS = 5.0, 3  # Of each operation, unless a client is made with others


class Tables:
    """DynamoDB in one region. Safe to share between threads; every read but `select` is consistent.

    Every call raises DependencyFailed if the table did not answer, or not for everything asked.
    """

    def __init__(
        self, *, timeout_s: float = TIMEOUT_S, attempts: int = ATTEMPTS, writers: int = 16, **options: Any
    ) -> None:
        """Make the client, with options (region and session) and errors of `aws.client`; makes no call."""
        self._client = client("dynamodb", timeout_s=timeout_s, attempts=attempts, connections=writers + 4, **options)
        self._writers = ThreadPoolExecutor(writers, thread_name_prefix="dynamodb")

    def open_connection(self) -> None:
        """Connect, so that the next call need not."""
        open_connection(self._client)

    def ask(self, table: str, operation: str, **request: Any) -> dict[str, Any]:
        """One operation on one table.

        Raises ClientError: a condition failed, or another transaction was in progress.
        """
        return self._call(table, operation, TableName=table, **request)

    def ask_if(
        self, table: str, operation: str, condition: str, *, what: str = "", **request: Any
    ) -> dict[str, Any] | None:
        """As `ask`, if a condition holds; None if it does not, or if the row is being written and `what` is not named.

        Raises DependencyFailed: also if `what` is being written by another transaction.
        """
        try:
            return self.ask(table, operation, ConditionExpression=condition, **request)
        except ClientError as error:
            if what and error.response["Error"]["Code"] != CONDITION_FAILED:
                raise DependencyFailed(f"{what} is being written by someone else; try again") from error
            return None

    def get(self, table: str, key: Mapping[str, Any]) -> Row:
        """The row under a typed key; empty if there is none."""
        row: Row = self.ask(table, "get_item", Key=key, ConsistentRead=True).get("Item", {})
        return row

    def delete(self, table: str, key: Mapping[str, Any]) -> None:
        """Delete the row under a typed key, if there is one."""
        self.ask(table, "delete_item", Key=key)

    def query(self, table: str, key: str, value: Mapping[str, str], index: str = "") -> Iterator[Row]:
        """The rows with a typed value of the partition key; those of an index lag behind the table."""
        read: dict[str, Any] = {"IndexName": index} if index else {"ConsistentRead": True}
        names, values = {"#key": key}, {":key": value}
        yield from self.all_rows(
            table, "query", KeyConditionExpression="#key = :key", ExpressionAttributeNames=names,
            ExpressionAttributeValues=values, **read,
        )  # fmt: skip

    def transact(self, table: str, actions: Sequence[Mapping[str, Any]]) -> bool:
        """Write all of these or none. False if a condition fails or another writer is in progress."""
        try:
            self._call(table, "transact_write_items", TransactItems=list(actions))
        except ClientError as error:
            reasons = {reason.get("Code") for reason in error.response.get("CancellationReasons", ())}
            if reasons & {"ConditionalCheckFailed", "TransactionConflict"}:
                return False
            raise DependencyFailed(f"{table} did not write: {error.response['Error'].get('Message')}") from error
        return True

    def rows(self, table: str, keys: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
        """The rows that exist under these typed keys, in any order."""
        waiting = iter(keys)
        while asked := list(islice(waiting, _BATCH)):
            yield from self._batch(table, asked)

    def _batch(self, table: str, keys: list[Mapping[str, Any]]) -> Iterator[Row]:
        wait_s = FIRST_WAIT_S
        for _ in range(BATCH_ATTEMPTS):
            answer = self._call(table, "batch_get_item", RequestItems={table: {"Keys": keys, "ConsistentRead": True}})
            yield from _part(answer, "Responses", table).get(table, ())
            keys = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
            if not keys:
                return
            time.sleep(wait_s)
            wait_s *= 2
        raise DependencyFailed(f"{table} is over its capacity; try again")

    def all_rows(self, table: str, operation: str, **request: Any) -> Iterator[Row]:
        start: dict[str, Any] = {}
        while True:
            page = self.ask(table, operation, **{**request, **start})
            yield from _part(page, "Items", table)
            if "LastEvaluatedKey" not in page:
                return
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Apply `work` to each concurrently; the results in order. The first error is raised."""
        return list(self._writers.map(work, items))

    def _call(self, table: str, operation: str, **request: Any) -> dict[str, Any]:
        conditional = "ConditionExpression" in request or "TransactItems" in request
        return call(table, lambda: getattr(self._client, operation)(**request), answers=_ANSWERS if conditional else ())


@dataclass(frozen=True, slots=True)
class InTable:
    """A store of which all rows are in one table."""

    tables: Tables
    table: str


CONDITION_FAILED = "ConditionalCheckFailedException"
_ANSWERS = (CONDITION_FAILED, "TransactionCanceledException", "TransactionConflictException")


def _part(answer: Mapping[str, Any], part: str, table: str) -> Any:
    """A required part of a response: without it, the response is not DynamoDB's."""
    if part not in answer:
        raise unexpected_response(table)
    return answer[part]


def key_of(id: Id) -> dict[str, Any]:
    namespace, name = parts(id)
    return {"namespace": {"S": namespace}, "name": {"S": name}}


def id_of(row: Row) -> Id:
    return capability_id(row["namespace"]["S"], row["name"]["S"])


_LIMITS = "more than 38 digits, beyond 1E125 or nearer to 0 than 1E-130"


class NotStorable(ValueError):
    """DynamoDB cannot store the item; the message names the value."""


def to_row(item: Mapping[str, Any]) -> dict[str, Any]:
    """Type the attributes of an item; an attribute that is None is left out.

    Raises NotStorable: it contains a number or an empty name that DynamoDB cannot store, or a value that is not JSON.
    """
    return {name: _SERIALIZER.serialize(value) for name, value in item.items() if value is not None}


def from_row(row: Row) -> dict[str, Any]:
    """The item of a row; sets become sorted lists, binary values bytes."""
    return {name: _DESERIALIZER.deserialize(value) for name, value in row.items()}


class _Serializer(TypeSerializer):  # type: ignore[misc] # boto3 has no types
    """boto3's own, for JSON: it takes floats, and refuses what only the service would refuse."""

    def serialize(self, value: object) -> Any:
        match value:
            case None | bool() | str():
                pass
            case int() | float():
                value = Decimal(repr(value))
                exponent = value.adjusted() if value else 0
                if not value.is_finite() or len(value.as_tuple().digits) > 38 or not -130 <= exponent <= 125:
                    raise NotStorable(f"contains a number with {_LIMITS}, which DynamoDB cannot store")
            case Mapping():
                if "" in value:
                    raise NotStorable("contains an entry with an empty name, which DynamoDB cannot store")
            case list() | tuple():
                pass
            case _:
                raise NotStorable(f"contains a {type(value).__name__}, which JSON does not have")
        return super().serialize(value)


class _Deserializer(TypeDeserializer):  # type: ignore[misc] # as above
    """boto3's own, for JSON: numbers are int or float, and sets are sorted lists."""

    def _deserialize_n(self, value: str) -> int | float:
        number = Decimal(value)
        return int(number) if number == number.to_integral_value() else float(number)

    def _deserialize_b(self, value: bytes) -> bytes:
        return value

    def _deserialize_ns(self, value: Sequence[str]) -> list[int | float]:
        return sorted(map(self._deserialize_n, value))

    def _deserialize_ss(self, value: Sequence[str]) -> list[str]:
        return sorted(value)

    _deserialize_bs = _deserialize_ss


_SERIALIZER, _DESERIALIZER = _Serializer(), _Deserializer()
