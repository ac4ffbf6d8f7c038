"""Registry and trust in DynamoDB. The tables' streams announce every change."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from mats.adapters.dynamodb.tables import CONDITION_FAILED, NotStorable, Tables, from_row, id_of, key_of, to_row
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, Fault, PreconditionFailed, RegistrationInvalid
from mats.domain.profile.assignment import Assigned, parse_row, resolve_all
from mats.domain.profile.origin import Placed, place, version_of
from mats.ports import Item

_KEY = ("namespace", "name")
_KEYS_ONLY = {"ProjectionExpression": "#ns, #n", "ExpressionAttributeNames": {"#ns": "namespace", "#n": "name"}}


@dataclass(frozen=True, slots=True)
class DynamoRegistry:
    """The ports `Registry` and `SyncTarget` over a table with the keys `namespace` and `name`."""

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

    def remove_same(self, id: Id, item: Item) -> bool:
        try:
            request = {"Key": key_of(id), "ReturnValues": "ALL_OLD", **_is_same(item)}
            return "Attributes" in self.tables.ask(self.table, "delete_item", **request)
        except ClientError as error:
            if error.response["Error"]["Code"] != CONDITION_FAILED:
                raise DependencyFailed(f"{id} is being written by someone else; try again") from error
        if not self.get([id]):
            return False
        raise PreconditionFailed(id)

    def ids(self, *, after: Id | None = None, namespace: str = "") -> Iterator[Id]:
        """Scans the whole table, also for one namespace."""
        start = {"ExclusiveStartKey": key_of(after)} if after else {}
        within = _in_namespace(namespace) if namespace else {}
        rows = self.tables.all_rows(self.table, "scan", ConsistentRead=True, **_KEYS_ONLY, **start, **within)
        yield from map(id_of, rows)


def _is_same(item: Item) -> dict[str, Any]:
    """The condition that every attribute of a registration is as in this item, and that no other is there."""
    row = {name: typed for name, typed in to_row(item).items() if name not in _KEY}
    others = [name for name in Registration.model_fields if name not in row and name not in _KEY]
    names = {f"#a{number}": name for number, name in enumerate([*row, *others])}
    values = {f":a{number}": typed for number, typed in enumerate(row.values())}
    clauses = [
        f"{name} = :a{number}" if number < len(row) else f"attribute_not_exists({name})"
        for number, name in enumerate(names)
    ]
    condition = {"ConditionExpression": " AND ".join(clauses), "ExpressionAttributeNames": names}
    return {**condition, **({"ExpressionAttributeValues": values} if values else {})}


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
        self.tables.ask(self.table, "put_item", Item={**key_of(key), **to_row(assigned.to_row())})
