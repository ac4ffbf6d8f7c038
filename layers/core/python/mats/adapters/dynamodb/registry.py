"""Registry, trust and audiences of callers in DynamoDB. The streams of the former two announce every change."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from mats.adapters.dynamodb.tables import InTable, NotStorable, Row, Tables, from_row, id_of, key_of, to_row
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault, PreconditionFailed, RegistrationInvalid
from mats.domain.profile.assignment import Assigned, parse_row, resolve_all
from mats.domain.profile.origin import Placed, place, version_of
from mats.ports import Item

_KEY = ("namespace", "name")
_KEYS_ONLY = {"ProjectionExpression": "#ns, #n", "ExpressionAttributeNames": {"#ns": "namespace", "#n": "name"}}


class DynamoRegistry(InTable):
    """The ports `Registry` and `SyncTarget` over a table with the keys `namespace` and `name`."""

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
        answer = self.tables.ask_if(
            self.table, "put_item", "attribute_not_exists(#kind) OR #kind = :kind", what=registration.id, Item=row,
            ExpressionAttributeNames={"#kind": "kind"}, ExpressionAttributeValues={":kind": row["kind"]},
            ReturnValues="ALL_OLD",
        )  # fmt: skip
        if answer is None:
            return Placed.OTHER_KIND
        before = answer.get("Attributes")
        return place(before and version_of(from_row(before)), version_of(from_row(row)))

    def remove(self, id: Id) -> bool:
        return "Attributes" in self.tables.ask(self.table, "delete_item", Key=key_of(id), ReturnValues="ALL_OLD")

    def remove_same(self, id: Id, item: Item) -> bool:
        condition, request = _is_same(item)
        request |= {"Key": key_of(id), "ReturnValues": "ALL_OLD"}
        answer = self.tables.ask_if(self.table, "delete_item", condition, what=id, **request)
        if answer is None and self.get([id]):
            raise PreconditionFailed(id)
        return "Attributes" in (answer or {})

    def ids(self, *, after: Id | None = None, namespace: str = "") -> Iterator[Id]:
        """Scans the whole table, also for one namespace."""
        start = {"ExclusiveStartKey": key_of(after)} if after else {}
        within: dict[str, Any] = {}
        if namespace:
            within["FilterExpression"] = "#ns = :ns OR begins_with(#ns, :below)"
            within["ExpressionAttributeValues"] = {":ns": {"S": namespace}, ":below": {"S": f"{namespace}."}}
        rows = self.tables.all_rows(self.table, "scan", ConsistentRead=True, **_KEYS_ONLY, **start, **within)
        yield from map(id_of, rows)


def _is_same(item: Item) -> tuple[str, dict[str, Any]]:
    """The condition that every attribute of a registration is as in this item, and no other is there; its names."""
    row = {name: typed for name, typed in to_row(item).items() if name not in _KEY}
    others = [name for name in Registration.model_fields if name not in row and name not in _KEY]
    names = {f"#a{number}": name for number, name in enumerate([*row, *others])}
    values = {f":a{number}": typed for number, typed in enumerate(row.values())}
    clauses = [
        f"{name} = :a{number}" if number < len(row) else f"attribute_not_exists({name})"
        for number, name in enumerate(names)
    ]
    named = {"ExpressionAttributeNames": names, **({"ExpressionAttributeValues": values} if values else {})}
    return " AND ".join(clauses), named


class DynamoTrust(InTable):
    """The port `TrustBook` over a table with the keys of the registry."""

    def get(self, ids: Collection[Id]) -> Mapping[Id, Assigned]:
        return resolve_all(ids, self.rows)

    def rows(self, keys: Collection[Id]) -> Mapping[Id, Assigned]:
        rows = {id_of(row): parse_row(from_row(row)) for row in self.tables.rows(self.table, map(key_of, keys))}
        return {key: row for key, row in rows.items() if row}

    def put(self, key: Id, assigned: Assigned) -> None:
        if not assigned:
            self.tables.delete(self.table, key_of(key))
            return
        self.tables.ask(self.table, "put_item", Item={**key_of(key), **to_row(assigned.to_row())})


_FRESH_MS, _MAX_CACHED = 60_000, 10_000


class DynamoCallers:
    """The audiences of IAM callers, by consistent reads, cached for at most a minute. Safe to share between threads.

    The key of the table is `caller`: the ARN of a user, or of a role without its path, as of its sessions.
    """

    def __init__(self, tables: Tables, table: str, elapsed_ms: Callable[[], float]) -> None:
        self._elapsed_ms = elapsed_ms
        self._read = lru_cache(_MAX_CACHED)(
            lambda caller, minute: _audiences(tables.get(table, {"caller": {"S": caller}}))
        )

    def audiences(self, caller: str) -> frozenset[str]:
        """The audiences of a role or user, by its ARN as `principal` gives it.

        Raises DependencyFailed: the table did not answer, and nothing is cached.
        """
        return self._read(caller, self._elapsed_ms() // _FRESH_MS)


def _audiences(row: Row) -> frozenset[str]:
    """The names in a list or a set; an item that people mistyped has none."""
    listed = from_row(row).get("audiences")
    return frozenset(each for each in listed if isinstance(each, str)) if isinstance(listed, list) else frozenset()
