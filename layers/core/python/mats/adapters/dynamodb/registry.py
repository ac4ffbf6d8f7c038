"""Registry, trust and callers: what people write. Their streams announce every change, so nothing is announced here."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from mats.adapters.dynamodb.tables import CONDITION_FAILED, Tables, id_of, key_of
from mats.adapters.dynamodb.values import NotStorable, from_row, to_row
from mats.domain.capability import Id
from mats.domain.errors import DependencyFailed, Fault, RegistrationInvalid
from mats.domain.placement import Placed, place, version_of
from mats.domain.registration import Registration
from mats.ports import Item

_KEYS_ONLY = {"ProjectionExpression": "#ns, #n", "ExpressionAttributeNames": {"#ns": "namespace", "#n": "name"}}


@dataclass(frozen=True, slots=True)
class DynamoRegistry:
    """The registry port over a table with the keys `namespace` and `name`."""

    tables: Tables
    table: str

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        """The items there are."""
        return {id_of(row): from_row(row) for row in self.tables.rows(self.table, map(key_of, ids))}

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        """Write registrations, each by itself; of several under one id the last counts."""
        last = {registration.id: registration for registration in registrations}
        return dict(zip(last, self.tables.each(self._put, last.values()), strict=True))

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
                raise DependencyFailed(f"{self.table}: another is writing {registration.id}; try again") from error
            return Placed.OTHER_KIND
        before = answer.get("Attributes")
        return place(before and version_of(from_row(before)), version_of(from_row(row)))

    def remove(self, id: Id) -> bool:
        """Take an item out; whether there was one."""
        return "Attributes" in self.tables.ask(self.table, "delete_item", Key=key_of(id), ReturnValues="ALL_OLD")

    def ids(self) -> Iterator[Id]:
        """Every id, in no order."""
        yield from map(id_of, self.tables.all_rows(self.table, "scan", ConsistentRead=True, **_KEYS_ONLY))


@dataclass(frozen=True, slots=True)
class DynamoTrust:
    """The trust port over a table with the keys of the registry."""

    tables: Tables
    table: str

    def get(self, ids: Collection[Id]) -> Mapping[Id, int]:
        """The trust there is; what an operator mistyped is none."""
        rows = self.tables.rows(self.table, map(key_of, ids))
        given = {id_of(row): from_row(row).get("trust") for row in rows}
        return {id: trust for id, trust in given.items() if isinstance(trust, int) and 0 <= trust <= 100}

    def put(self, id: Id, trust: int | None) -> None:
        """Set the trust in a capability, or take it back."""
        if trust is None:
            self.tables.ask(self.table, "delete_item", Key=key_of(id))
        else:
            self.tables.ask(self.table, "put_item", Item={**key_of(id), "trust": {"N": str(trust)}})


@dataclass(frozen=True, slots=True)
class DynamoCallers:
    """The audiences of IAM callers, as operators wrote them; read again after a minute."""

    tables: Tables
    table: str
    elapsed_ms: Callable[[], float]
    fresh_ms: float = 60_000
    most: int = 10_000
    _known: dict[str, tuple[float, frozenset[str]]] = field(default_factory=dict)
    _lock: Any = field(default_factory=threading.Lock)

    def audiences(self, caller: str) -> frozenset[str]:
        """The audiences of a role or user, by its ARN.

        Raises:
            DependencyFailed: the table did not answer, and it was not asked within the last minute.
        """
        known = self._known.get(caller)
        if known and self.elapsed_ms() - known[0] < self.fresh_ms:
            return known[1]
        answer = self.tables.ask(self.table, "get_item", Key={"caller": {"S": caller}})
        said = from_row(answer.get("Item", {})).get("audiences")
        audiences = frozenset(a for a in said if isinstance(a, str)) if isinstance(said, list) else frozenset()
        with self._lock:
            if len(self._known) >= self.most:
                self._known.clear()
            self._known[caller] = (self.elapsed_ms(), audiences)
        return audiences
