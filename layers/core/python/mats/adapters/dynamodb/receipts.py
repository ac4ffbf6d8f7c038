"""Receipts, and the outcomes that callers report, in two tables.

Receipts, with the key `query_id`: DynamoDB deletes each within days of `expires_at`.
Outcomes, with the keys `query_id` and `item`: the item `receipt` has the answer's receipt, `missing` and `confirmed`;
the item `outcome#<id>` has a result's `id` and `events`.
Its index `by-id` has the keys of the outcomes of each capability.
"""

import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mats.adapters.clock import FOR_EVER, Retention
from mats.adapters.dynamodb.tables import InTable, Row, Tables, from_row, to_row
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import TAUGHT, Event, Feedback, Outcome, Receipt, ReportedAnswer

BY_ID = "by-id"
_RECEIPT, _OUTCOME = "receipt", "outcome#"
_ATTEMPTS = 12  # For transactions that meet others on the same rows, with exponential backoff
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.01, 0.4


@dataclass(frozen=True, slots=True)
class DynamoOutcomes:
    """The port `Outcomes`. Feedback is recorded in one transaction, which fails if the rows that it read have changed.

    DynamoDB deletes the rows of an answer when its `retention` is over, but not of a lesson.
    """

    tables: Tables
    outcomes: str
    retention: Retention = FOR_EVER

    def record(self, receipt: Receipt, feedback: Feedback) -> Sequence[Outcome]:
        wait_s, share = _FIRST_WAIT_S, 0.5 + (zlib.crc32(receipt.query_id.encode()) % 100) / 200  # not all at once
        for _ in range(_ATTEMPTS):
            before = {row["item"]["S"]: row for row in self._rows(receipt.query_id)}
            actions, new = self._actions(before, receipt, feedback)
            if not actions or self.tables.transact(self.outcomes, actions):
                return new
            time.sleep(share * wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        raise DependencyFailed(f"{self.outcomes} is written by too many at once; try again")

    def of(self, query_id: str) -> ReportedAnswer | None:
        rows = {row["item"]["S"]: row for row in self._rows(query_id)}
        kept = rows.pop(_RECEIPT, None)
        if kept is None:
            return None
        return ReportedAnswer(
            receipt=receipt_of(kept),
            events={Id(item.removeprefix(_OUTCOME)): _events(row) for item, row in rows.items()},
            missing=kept.get("missing", {}).get("S", ""),
            confirmed=kept.get("confirmed", {}).get("BOOL", False),
        )

    def confirm(self, query_id: str, *, confirmed: bool = True) -> bool:
        values = {":confirmed": {"BOOL": confirmed}}
        answer = self.tables.ask_if(
            self.outcomes, "update_item", "attribute_exists(query_id)", what=query_id, Key=_key(query_id, _RECEIPT),
            UpdateExpression="SET confirmed = :confirmed", ExpressionAttributeValues=values,
        )  # fmt: skip
        return answer is not None

    def query_ids(self, *, after: str = "") -> Iterator[str]:
        """Scans the whole table."""
        start = {"ExclusiveStartKey": _key(after, _RECEIPT)} if after else {}
        rows = self.tables.all_rows(
            self.outcomes, "scan", ConsistentRead=True, FilterExpression="#item = :receipt",
            ProjectionExpression="query_id", ExpressionAttributeNames={"#item": "item"},
            ExpressionAttributeValues={":receipt": {"S": _RECEIPT}}, **start,
        )  # fmt: skip
        yield from (row["query_id"]["S"] for row in rows)

    def forget(self, id: Id, *, lessons: bool = False) -> int:
        """Reports of the last second may stay: the index follows the table."""
        rows = self.tables.query(self.outcomes, "id", {"S": id}, BY_ID)
        keys = [_key(row["query_id"]["S"], row["item"]["S"]) for row in rows]
        return self._delete([key for key in keys if lessons or not key["query_id"]["S"].startswith(TAUGHT)])

    def withdraw(self, query_id: str) -> bool:
        """The receipt goes last: after an interruption, a caller's reports are still found by it."""
        items = {row["item"]["S"] for row in self._rows(query_id)}
        deleted = self._delete([_key(query_id, item) for item in items - {_RECEIPT}])
        return deleted + self._delete([_key(query_id, item) for item in items & {_RECEIPT}]) > 0

    def withdraw_of(self, caller: str) -> int:
        """Scans the whole table."""
        rows = self.tables.all_rows(
            self.outcomes, "scan", ConsistentRead=True, ProjectionExpression="query_id",
            FilterExpression="#item = :receipt AND caller = :caller AND NOT confirmed = :yes",
            ExpressionAttributeNames={"#item": "item"},
            ExpressionAttributeValues={":receipt": {"S": _RECEIPT}, ":caller": {"S": caller}, ":yes": {"BOOL": True}},
        )  # fmt: skip
        return sum(self.withdraw(row["query_id"]["S"]) for row in list(rows))

    def _delete(self, keys: Sequence[Mapping[str, Any]]) -> int:
        return len(self.tables.map(lambda key: self.tables.delete(self.outcomes, key), keys))

    def _rows(self, query_id: str) -> Iterator[Row]:
        return self.tables.query(self.outcomes, "query_id", {"S": query_id})

    def _actions(
        self, before: Mapping[str, Row], receipt: Receipt, feedback: Feedback
    ) -> tuple[list[dict[str, Any]], Sequence[Outcome]]:
        """The writes of a transaction over the rows of an answer, and the outcomes that are new."""
        actions = self._receipt_actions(before.get(_RECEIPT), receipt, feedback.missing)
        new: list[Outcome] = []
        for id in dict.fromkeys(outcome.id for outcome in feedback.outcomes):
            row = before.get(f"{_OUTCOME}{id}")
            known = _events(row) if row else frozenset()
            added = dict.fromkeys(each for each in feedback.outcomes if each.id == id and each.event not in known)
            if added:
                new += added
                actions.append(self._put_outcome(receipt, id, row, known.union(each.event for each in added)))
        return actions, new

    def _receipt_actions(self, row: Row | None, receipt: Receipt, missing: str) -> list[dict[str, Any]]:
        said = {"missing": {"S": missing}} if missing else {}
        if row is None:
            item = {**receipt_row(receipt), **_key(receipt.query_id, _RECEIPT), **said, **self._expiry(receipt)}
            return [{"Put": {"TableName": self.outcomes, "Item": item, **_ABSENT}}]
        if not missing or row.get("missing", {}).get("S") == missing:
            return []
        update = {
            "UpdateExpression": "SET #missing = :missing",
            "ExpressionAttributeNames": {"#missing": "missing"},
            "ExpressionAttributeValues": {":missing": {"S": missing}},
        }
        return [{"Update": {"TableName": self.outcomes, "Key": _key(receipt.query_id, _RECEIPT), **update}}]

    def _expiry(self, receipt: Receipt) -> dict[str, Any]:
        at = None if receipt.query_id.startswith(TAUGHT) else self.retention.expires_at()
        return {} if at is None else {"expires_at": {"N": str(at)}}

    def _put_outcome(self, receipt: Receipt, id: Id, row: Row | None, events: frozenset[Event]) -> dict[str, Any]:
        item = {
            **_key(receipt.query_id, f"{_OUTCOME}{id}"),
            "id": {"S": id},
            "events": {"SS": sorted(events)},
            **self._expiry(receipt),
        }
        condition: dict[str, Any] = _ABSENT
        if row:
            values = {":events": row["events"]}
            condition = {"ConditionExpression": "events = :events", "ExpressionAttributeValues": values}
        return {"Put": {"TableName": self.outcomes, "Item": item, **condition}}


_ABSENT = {"ConditionExpression": "attribute_not_exists(query_id)"}


def _key(query_id: str, item: str) -> dict[str, Any]:
    return {"query_id": {"S": query_id}, "item": {"S": item}}


def _events(row: Row) -> frozenset[Event]:
    return frozenset(map(Event, row["events"]["SS"]))


@dataclass(frozen=True, slots=True)
class DynamoReceipts(InTable):
    """The port `Receipts`."""

    retention: Retention

    def put(self, receipt: Receipt) -> None:
        expiry = {"expires_at": {"N": str(self.retention.expires_at())}}
        self.tables.ask(self.table, "put_item", Item={**receipt_row(receipt), **expiry})

    def put_all(self, receipts: Sequence[Receipt]) -> None:
        """Each by itself. Raises as `put` does."""
        for receipt in receipts:
            self.put(receipt)

    def get(self, query_id: str) -> Receipt | None:
        row = self.tables.get(self.table, {"query_id": {"S": query_id}})
        return receipt_of(row) if row and int(row["expires_at"]["N"]) > self.retention.now() else None


def receipt_row(receipt: Receipt) -> dict[str, Any]:
    return {**to_row(receipt.to_json()), **({} if receipt.vector is None else {"vector": {"B": receipt.vector}})}


def receipt_of(row: Row) -> Receipt:
    fields = from_row(row)
    return Receipt.from_json(fields, bytes(fields["vector"]) if "vector" in fields else None)
