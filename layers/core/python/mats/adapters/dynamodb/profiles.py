"""Profiles, their versions and the list of indices, in one table.

Row of a profile: namespace and name as keys, one attribute per field, the vector as little-endian float32.
Row of a version: `versions#<sha256 of the id>` and the revision as keys; the current revision has one, too.
"""

import hashlib
import sys
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from mats.adapters.dynamodb.tables import Tables
from mats.adapters.dynamodb.values import Row, from_row, to_row
from mats.domain.capability import Id, parts
from mats.domain.profile import Profile
from mats.ports import Stored, Vector

_VERSIONS = "versions#"
_NOT_FIELDS = ("row", "vector", "id")
"""Attributes of a row that are not fields of a profile."""


@dataclass(frozen=True, slots=True)
class DynamoProfiles:
    """The port `ProfileStore` over a table with the keys `namespace` and `name`."""

    tables: Tables
    table: str

    def get(self, ids: Collection[Id]) -> Mapping[Id, Stored]:
        return {_id(row): _parse_row(row) for row in self.tables.rows(self.table, map(_key, ids))}

    def save(self, changes: Sequence[Stored]) -> Collection[Id]:
        """One transaction per profile: its row and the row of its version."""
        saved = self.tables.map(self._save, changes)
        return [change.profile.id for change, done in zip(changes, saved, strict=True) if not done]

    def _save(self, change: Stored) -> bool:
        profile = change.profile
        body = to_row(profile.model_dump(mode="json"))
        row: dict[str, Any] = {**body, **_key(profile.id), "row": {"S": "profile"}}
        if change.vector is not None:
            row["vector"] = {"B": _to_bytes(change.vector)}
        version = {**body, **_version_key(profile.id, profile.rev), "id": {"S": profile.id}, "row": {"S": "version"}}
        first = profile.rev == 1
        condition: dict[str, Any] = {
            "ConditionExpression": "attribute_not_exists(#rev)" if first else "#rev = :before",
            "ExpressionAttributeNames": {"#rev": "rev"},
        }
        if not first:
            condition["ExpressionAttributeValues"] = {":before": {"N": str(profile.rev - 1)}}
        return self.tables.transact(
            self.table,
            [
                {"Put": {"TableName": self.table, "Item": row, **condition}},
                {"Put": {"TableName": self.table, "Item": version}},
            ],
        )

    def mark_indexed(self, revs: Mapping[Id, int]) -> None:
        self.tables.map(lambda each: self._mark(*each), revs.items())

    def _mark(self, id: Id, rev: int) -> None:
        try:
            self.tables.ask(
                self.table,
                "update_item",
                Key=_key(id),
                UpdateExpression="SET indexed_rev = :rev",
                ConditionExpression="#rev = :rev",
                ExpressionAttributeNames={"#rev": "rev"},
                ExpressionAttributeValues={":rev": {"N": str(rev)}},
            )
        except ClientError:
            return  # it has another revision, is being written, or does not exist

    def versions(self, id: Id) -> Sequence[Profile]:
        """Leaves out the last row, which is the current revision's."""
        rows = self.tables.all_rows(
            self.table,
            "query",
            KeyConditionExpression="#ns = :versions",
            ExpressionAttributeNames={"#ns": "namespace"},
            ExpressionAttributeValues={":versions": _version_key(id, 0)["namespace"]},
            ConsistentRead=True,
        )
        return [_parse_version(row) for row in rows][:-1]

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        start = {"ExclusiveStartKey": _key(after)} if after else {}
        rows = self.tables.all_rows(
            self.table,
            "scan",
            ConsistentRead=True,
            FilterExpression="#row = :profile",
            ProjectionExpression="#ns, #n",
            ExpressionAttributeNames={"#row": "row", "#ns": "namespace", "#n": "name"},
            ExpressionAttributeValues={":profile": {"S": "profile"}},
            **start,
        )
        yield from map(_id, rows)


def _key(id: Id) -> dict[str, Any]:
    """The key of a profile's row. Ids stay escaped, so that no profile has the key of an internal row."""
    namespace, _, name = id.partition("/")
    return {"namespace": {"S": namespace}, "name": {"S": name}}


def _id(row: Row) -> Id:
    return Id(f"{row['namespace']['S']}/{row['name']['S']}")


def _version_key(id: Id, rev: int) -> dict[str, Any]:
    digest = hashlib.sha256(id.encode()).hexdigest()
    return {"namespace": {"S": f"{_VERSIONS}{digest}"}, "name": {"S": f"{rev:010d}"}}


def _parse_row(row: Row) -> Stored:
    body = from_row(row)
    vector = body.get("vector")
    namespace, name = parts(_id(row))
    return Stored(_profile(body, namespace, name), None if vector is None else _from_bytes(vector))


def _parse_version(row: Row) -> Profile:
    """The profile of a version row, whose attribute `id` names it."""
    return _profile(from_row(row), *parts(row["id"]["S"]))


def _profile(body: Mapping[str, Any], namespace: str, name: str) -> Profile:
    fields = {key: value for key, value in body.items() if key not in _NOT_FIELDS}
    return Profile.model_validate({**fields, "namespace": namespace, "name": name})


def _to_bytes(vector: Vector) -> bytes:
    return _little_endian(array("f", vector)).tobytes()


def _from_bytes(packed: bytes) -> Vector:
    return _little_endian(array("f", packed))


def _little_endian(values: Vector) -> Vector:
    if sys.byteorder == "big":
        values.byteswap()
    return values
