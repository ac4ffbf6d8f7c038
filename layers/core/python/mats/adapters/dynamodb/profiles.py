"""Profiles, their versions and the list of indices, in one table.

Row of a profile: namespace and name as keys, `id`, one attribute per field, the vector as little-endian float32.
Row of a superseded version: `versions#<sha256 of the id>` and the revision as keys, `expires_at` for DynamoDB, which
deletes it within days of that time. The version before a tombstone is also at `removed#<namespace>` and the name.
"""

import hashlib
import struct
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mats.adapters.clock import FOR_EVER, Retention
from mats.adapters.dynamodb.tables import InTable, Row, from_row, to_row
from mats.domain.capability.capability import Id, capability_id, parts
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import Profile, Status
from mats.ports import GUARD_DAYS, Stored, Target

_VERSIONS, _MAX_KEY_BYTES = "versions#", 2_048
_NOT_FIELDS = ("row", "vector", "id", "expires_at")  # Attributes of a row that are not fields of a profile


@dataclass(frozen=True, slots=True)
class DynamoProfiles(InTable):
    """The port `ProfileStore` over a table with the keys `namespace` and `name`."""

    retention: Retention = FOR_EVER

    def get(self, ids: Collection[Id]) -> Mapping[Id, Stored]:
        return {_id(row): _parse_row(row) for row in self.tables.rows(self.table, map(_key, ids))}

    def save(self, changes: Sequence[Stored]) -> Collection[Id]:
        """One transaction per profile: its row, and the row of the version that it supersedes."""
        before = self.get([change.profile.id for change in changes if change.profile.rev > 1])
        saved = self.tables.map(lambda change: self._save(change, before.get(change.profile.id)), changes)
        return [change.profile.id for change, done in zip(changes, saved, strict=True) if not done]

    def _save(self, change: Stored, before: Stored | None) -> bool:
        profile = change.profile
        if (before.profile.rev if before else 0) != profile.rev - 1:
            return False
        row: dict[str, Any] = {**_body(profile), **_key(profile.id), "row": {"S": "profile"}, "id": {"S": profile.id}}
        if change.vector is not None:
            row["vector"] = {"B": struct.pack(f"<{len(change.vector)}f", *change.vector)}
        condition: dict[str, Any] = {
            "ConditionExpression": "#rev = :before" if before else "attribute_not_exists(#rev)",
            "ExpressionAttributeNames": {"#rev": "rev"},
        }
        if before:
            condition["ExpressionAttributeValues"] = {":before": {"N": str(before.profile.rev)}}
        actions = [{"Put": {"TableName": self.table, "Item": row, **condition}}]
        if before:
            version = self._version(before.profile)
            actions.append({"Put": {"TableName": self.table, "Item": version}})
            key = _removed_key(profile.id)
            if profile.status is Status.DELETED:
                actions.append({"Put": {"TableName": self.table, "Item": {**version, **key, "row": {"S": "removed"}}}})
            elif before.profile.status is Status.DELETED:
                actions.append({"Put": {"TableName": self.table, "Item": {**key, "row": {"S": "back"}}}})
        return self.tables.transact(self.table, actions)

    def _version(self, profile: Profile) -> dict[str, Any]:
        row = {**_body(profile), **_version_key(profile.id, profile.rev), "id": {"S": profile.id}}
        expires_at = self.retention.expires_at()
        expiry = {} if expires_at is None else {"expires_at": {"N": str(expires_at)}}
        return {**row, **expiry, "row": {"S": "version"}}

    def mark_indexed(self, revs: Mapping[Id, int]) -> None:
        self.tables.map(lambda each: self._mark(*each), revs.items())

    def _mark(self, id: Id, rev: int) -> None:
        """Nothing, if it has another revision, is being written, or does not exist."""
        self.tables.ask_if(
            self.table, "update_item", "#rev = :rev", Key=_key(id), UpdateExpression="SET indexed_rev = :rev",
            ExpressionAttributeNames={"#rev": "rev"}, ExpressionAttributeValues={":rev": {"N": str(rev)}},
        )  # fmt: skip

    def versions(self, id: Id) -> Sequence[Profile]:
        now = self.retention.now()
        rows = self._version_rows(id)
        bodies = (from_row(row) for row in rows)
        return [_profile(body, *parts(body["id"])) for body in bodies if body.get("expires_at", now + 1) > now]

    def removals(self, namespace: str) -> Sequence[Profile]:
        bodies = (from_row(row) for row in self._partition(_removed_key(capability_id(namespace, ""))))
        return [_profile(body, *parts(body["id"])) for body in bodies if body["row"] == "removed"]

    def erase(self, id: Id) -> int:
        if self.get([id]):
            # DynamoDB is to delete the current row, a tombstone; writing it again takes the mark away
            expiry = {"N": str(self.retention.in_days(GUARD_DAYS))}
            marked = self.tables.ask_if(
                self.table, "update_item", "#status = :deleted", Key=_key(id),
                UpdateExpression="SET expires_at = :expiry", ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={":expiry": expiry, ":deleted": {"S": Status.DELETED}},
            )  # fmt: skip
            if marked is None:
                raise DependencyFailed(f"{id} has been written again; erase it again if it has to go")
            self.tables.delete(self.table, _removed_key(id))
        rows = self._version_rows(id)
        keys = [{name: row[name] for name in ("namespace", "name")} for row in rows]
        self.tables.map(lambda key: self.tables.delete(self.table, key), keys)
        return len(rows)

    def _version_rows(self, id: Id) -> list[Row]:
        return self._partition(_version_key(id, 0))

    def _partition(self, key: Row) -> list[Row]:
        return list(self.tables.query(self.table, "namespace", key["namespace"]))

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        start = {"ExclusiveStartKey": _key(after)} if after else {}
        rows = self.tables.all_rows(
            self.table,
            "scan",
            ConsistentRead=True,
            FilterExpression="#row = :profile",
            ProjectionExpression="#ns, #n, #id",
            ExpressionAttributeNames={"#row": "row", "#ns": "namespace", "#n": "name", "#id": "id"},
            ExpressionAttributeValues={":profile": {"S": "profile"}},
            **start,
        )
        yield from map(_id, rows)


def _body(profile: Profile) -> dict[str, Any]:
    return to_row(profile.model_dump(mode="json"))


def _key(id: Id) -> dict[str, Any]:
    """The key of a profile's row. Ids stay escaped, so that no profile has the key of an internal row."""
    namespace, _, name = id.partition("/")
    return {"namespace": {"S": _fit(namespace)}, "name": {"S": name}}


def _fit(namespace: str) -> str:
    """A key that DynamoDB takes: an escaped namespace, which is an invalid one, may be longer than that of its item."""
    is_long = len(namespace.encode()) > _MAX_KEY_BYTES
    return f"long#{hashlib.sha256(namespace.encode()).hexdigest()}" if is_long else namespace


def _id(row: Row) -> Id:
    return Id(row["id"]["S"] if "id" in row else f"{row['namespace']['S']}/{row['name']['S']}")


def _version_key(id: Id, rev: int) -> dict[str, Any]:
    digest = hashlib.sha256(id.encode()).hexdigest()
    return {"namespace": {"S": f"{_VERSIONS}{digest}"}, "name": {"S": f"{rev:010d}"}}


def _removed_key(id: Id) -> dict[str, Any]:
    """The key of a second row of the version that a tombstone superseded, so that those of a namespace are found."""
    key = _key(id)
    return {**key, "namespace": {"S": _fit(f"removed#{key['namespace']['S']}")}}


def _parse_row(row: Row) -> Stored:
    body = from_row(row)
    vector = body.get("vector")
    unpacked = None if vector is None else array("f", struct.unpack(f"<{len(vector) // 4}f", vector))
    return Stored(_profile(body, *parts(_id(row))), unpacked)


def _profile(body: Mapping[str, Any], namespace: str, name: str) -> Profile:
    fields = {key: value for key, value in body.items() if key not in _NOT_FIELDS}
    return Profile.model_validate({**fields, "namespace": namespace, "name": name})


_KEY = {"namespace": {"S": "~system"}, "name": {"S": "targets"}}  # no capability: tildes are escaped in namespaces
_ATTEMPTS = 5


class DynamoTargets(InTable):
    """The list of targets, oldest first, with optimistic locking."""

    def __call__(self) -> Sequence[Target]:
        """The current targets, by a consistent read."""
        return self._load()[0]

    def change(self, change: Callable[[Sequence[Target]], Sequence[Target]]) -> Sequence[Target]:
        """Replace the list by `change` of it; retried where another writer came first.

        Raises DependencyFailed: the table did not answer, or every attempt lost against another writer.
        """
        for _ in range(_ATTEMPTS):
            before, rev = self._load()
            after = change(before)
            if list(after) == list(before) or self._write(after, rev):
                return after
        raise DependencyFailed("the list of indices changes too often: check whether another reindex is running")

    def _load(self) -> tuple[Sequence[Target], int]:
        row = from_row(self.tables.get(self.table, _KEY))
        return [Target(**each) for each in row.get("targets", ())], row.get("rev", 0)

    def _write(self, targets: Sequence[Target], rev: int) -> bool:
        stored = [target._asdict() for target in targets]
        item = {**_KEY, **to_row({"targets": stored, "rev": rev + 1, "row": "targets"})}
        written = self.tables.ask_if(
            self.table, "put_item", "attribute_not_exists(#rev) OR #rev = :rev", Item=item,
            ExpressionAttributeNames={"#rev": "rev"}, ExpressionAttributeValues={":rev": {"N": str(rev)}},
        )  # fmt: skip
        return written is not None
