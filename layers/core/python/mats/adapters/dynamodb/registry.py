"""Registry and trust in DynamoDB. The tables' streams announce every change."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from mats.adapters.dynamodb.tables import CONDITION_FAILED, Tables, id_of, key_of
from mats.adapters.dynamodb.values import NotStorable, from_row, to_row
from mats.domain.assignment import Assigned, parse_row, resolve_all
from mats.domain.capability import Id
from mats.domain.errors import DependencyFailed, Fault, RegistrationInvalid
from mats.domain.placement import Placed, place, version_of
from mats.domain.registration import Registration
from mats.ports import Item

_KEYS_ONLY = {"ProjectionExpression": "#ns, #n", "ExpressionAttributeNames": {"#ns": "namespace", "#n": "name"}}


@dataclass(frozen=True, slots=True)
class DynamoRegistry:
    """The port `Registry` over a table with the keys `namespace` and `name`."""

    tables: Tables
    table: str

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        return {id_of(row): from_row(row) for row in self.tables.rows(self.table, map(key_of, ids))}

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        """Each by itself; of several registrations under one id the last wins."""
        last = {registration.id: registration for registration in registrations}
        return dict(zip(last, self.tables.map(self._put, last.values()), strict=True))

    def _put(self, registration: Registration) -> Placed:
        item = registration.item()
        try:
            row = to_row(item)
        except NotStorable as error:
            raise RegistrationInvalid([Fault("", str(error))]) from error
        try:
            answer = self.tables.ask(
                self.table,
                "put_item",
                Item=row,
                ConditionExpression="attribute_not_exists(#kind) OR #kind = :kind",
                ExpressionAttributeNames={"#kind": "kind"},
                ExpressionAttributeValues={":kind": row["kind"]},
                ReturnValues="ALL_OLD",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != CONDITION_FAILED:
                raise DependencyFailed(f"{registration.id} is being written by someone else; try again") from error
            return Placed.OTHER_KIND
        before = answer.get("Attributes")
        return place(before and version_of(from_row(before)), version_of(from_row(row)))

    def remove(self, id: Id) -> bool:
        return "Attributes" in self.tables.ask(self.table, "delete_item", Key=key_of(id), ReturnValues="ALL_OLD")

    def ids(self, *, after: Id | None = None, namespace: str = "") -> Iterator[Id]:
        """Scans the whole table, also for one namespace."""
        start = {"ExclusiveStartKey": key_of(after)} if after else {}
        within = _in_namespace(namespace) if namespace else {}
        rows = self.tables.all_rows(self.table, "scan", ConsistentRead=True, **_KEYS_ONLY, **start, **within)
        yield from map(id_of, rows)


def _in_namespace(namespace: str) -> dict[str, Any]:
    return {
        "FilterExpression": "#ns = :ns OR begins_with(#ns, :below)",
        "ExpressionAttributeValues": {":ns": {"S": namespace}, ":below": {"S": f"{namespace}."}},
    }


@dataclass(frozen=True, slots=True)
class DynamoTrust:
    """The port `TrustBook` over a table with the keys of the registry."""

    tables: Tables
    table: str

    def get(self, ids: Collection[Id]) -> Mapping[Id, Assigned]:
        return resolve_all(ids, self.rows)

    def rows(self, keys: Collection[Id]) -> Mapping[Id, Assigned]:
        rows = {id_of(row): parse_row(from_row(row)) for row in self.tables.rows(self.table, map(key_of, keys))}
        return {key: row for key, row in rows.items() if row}

    def put(self, key: Id, assigned: Assigned) -> None:
        if not assigned:
            self.tables.ask(self.table, "delete_item", Key=key_of(key))
            return
        trust = {} if assigned.trust is None else {"trust": {"N": str(assigned.trust)}}
        provider = {"provider": {"S": assigned.provider}} if assigned.provider else {}
        self.tables.ask(self.table, "put_item", Item={**key_of(key), **trust, **provider})
