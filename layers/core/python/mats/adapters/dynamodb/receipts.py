"""Receipts, and the outcomes that callers report, in three tables.

Receipts, with the key `query_id`: DynamoDB deletes each within days of `expires_at`.
Outcomes, with the keys `query_id` and `item`: the item `receipt` has the answer's receipt, `missing` and `confirmed`;
the item `outcome#<id>` has a result's `id` and `events`, and what they have added to its tally: `counted` and `weight`.
Its index `by-id` has the keys of the outcomes of each capability.
Tallies, with the keys `id` and `caller`: sums of weights.
"""

import time
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mats.adapters.clock import FOR_EVER, Retention
from mats.adapters.dynamodb.tables import InTable, Row, Tables, from_row, to_row
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import TAUGHT, Event, Feedback, Outcome, Receipt, ReportedAnswer, effective_event
from mats.domain.learning.reliability import Tally, weight_at

BY_ID = "by-id"
_RECEIPT, _OUTCOME = "receipt", "outcome#"
_ATTEMPTS = 12  # For transactions that meet others on the same rows, with exponential backoff
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.01, 0.4
_DIGITS = 6  # Decimal places of a number: a sum of weights must stay below DynamoDB's 38 digits
_SUMS = {Event.SUCCEEDED: "successes", Event.FAILED: "failures"}


@dataclass(frozen=True, slots=True)
class DynamoOutcomes:
    """The port `Outcomes`. Feedback is recorded in one transaction, which fails if the rows that it read have changed.

    DynamoDB deletes the rows of an answer when its `retention` is over, but not of a lesson.
    """

    tables: Tables
    outcomes: str
    tallied: str
    retention: Retention = FOR_EVER

    def record(self, receipt: Receipt, feedback: Feedback, at: str) -> Sequence[Outcome]:
        wait_s, share = _FIRST_WAIT_S, 0.5 + (zlib.crc32(receipt.query_id.encode()) % 100) / 200  # not all at once
        for _ in range(_ATTEMPTS):
            before = {row["item"]["S"]: row for row in self._rows(receipt.query_id)}
            actions, new = self._actions(before, receipt, feedback, round(weight_at(at), _DIGITS))
            if not actions or self.tables.transact(self.outcomes, actions):
                return new
            time.sleep(share * wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        raise _too_many_writers(self.outcomes)

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

    def tallies(self, ids: Collection[Id]) -> Mapping[Id, Sequence[Tally]]:
        return DynamoTallies(self.tables, self.tallied).tallies(ids)

    def forget(self, id: Id, *, lessons: bool = False) -> int:
        """Reports of the last second may stay: the index follows the table."""
        rows = self.tables.query(self.outcomes, "id", {"S": id}, BY_ID)
        keys = [_key(row["query_id"]["S"], row["item"]["S"]) for row in rows]
        deleted = self._delete([key for key in keys if lessons or not key["query_id"]["S"].startswith(TAUGHT)])
        for tally in self.tables.query(self.tallied, "id", {"S": id}):
            self.tables.delete(self.tallied, {"id": tally["id"], "caller": tally["caller"]})
        return deleted

    def withdraw(self, query_id: str) -> bool:
        return self._delete([_key(query_id, row["item"]["S"]) for row in self._rows(query_id)]) > 0

    def withdraw_of(self, caller: str) -> int:
        """Scans two tables. A tally that a report changed since before the answers were read is read again."""
        withdrawn = 0
        for _ in range(_ATTEMPTS):
            tallied, kept = list(self._of_caller(self.tallied, caller)), defaultdict[tuple[str, str], float](float)
            for answer in self._of_caller(self.outcomes, caller):
                query_id = answer["query_id"]["S"]
                outcomes = [row for row in self._rows(query_id) if row["item"]["S"] != _RECEIPT]
                if answer.get("confirmed", {}).get("BOOL"):
                    for row in outcomes:
                        kept[row["id"]["S"], row["counted"]["S"]] += float(row["weight"]["N"])
                else:
                    self._delete([_key(query_id, row["item"]["S"]) for row in outcomes])
                    withdrawn += self._delete([_key(query_id, _RECEIPT)])  # the last: an interrupted call is repeated
            if all(self._replace_tally(row, kept) for row in tallied):
                return withdrawn
        raise _too_many_writers(self.outcomes)

    def _of_caller(self, table: str, caller: str) -> Iterator[Row]:
        values = {":caller": {"S": caller}}
        return self.tables.all_rows(
            table, "scan", ConsistentRead=True, FilterExpression="caller = :caller", ExpressionAttributeValues=values
        )

    def _replace_tally(self, row: Row, kept: Mapping[tuple[str, str], float]) -> bool:
        """Set a tally to what is kept; False if it is no longer as this row says."""
        sums = {name: {"N": repr(round(kept[row["id"]["S"], event], _DIGITS))} for event, name in _SUMS.items()}
        answer = self.tables.ask_if(
            self.tallied, "update_item", "successes = :successes_before AND failures = :failures_before",
            Key={name: row[name] for name in ("id", "caller")},
            UpdateExpression="SET successes = :successes, failures = :failures",
            ExpressionAttributeValues={
                **{f":{name}": value for name, value in sums.items()}, **{f":{name}_before": row[name] for name in sums}
            },
        )  # fmt: skip
        return answer is not None

    def _delete(self, keys: Sequence[Mapping[str, Any]]) -> int:
        return len(self.tables.map(lambda key: self.tables.delete(self.outcomes, key), keys))

    def _rows(self, query_id: str) -> Iterator[Row]:
        return self.tables.query(self.outcomes, "query_id", {"S": query_id})

    def _actions(
        self, before: Mapping[str, Row], receipt: Receipt, feedback: Feedback, weight: float
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
                events = known.union(each.event for each in added)
                actions += self._outcome_actions(receipt, id, row, events, weight)
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

    def _outcome_actions(
        self, receipt: Receipt, id: Id, row: Row | None, events: frozenset[Event], weight: float
    ) -> list[dict[str, Any]]:
        before = (Event(row["counted"]["S"]), float(row["weight"]["N"])) if row else None
        effective = effective_event(events)
        assert effective is not None  # noqa: S101 - there is an event
        after = before if before and before[0] is effective else (effective, weight)
        item = {
            **_key(receipt.query_id, f"{_OUTCOME}{id}"),
            "id": {"S": id},
            "events": {"SS": sorted(events)},
            "counted": {"S": after[0]},
            "weight": {"N": repr(after[1])},
            **self._expiry(receipt),
        }
        condition: dict[str, Any] = _ABSENT
        if row:
            values = {":events": row["events"]}
            condition = {"ConditionExpression": "events = :events", "ExpressionAttributeValues": values}
        put = {"Put": {"TableName": self.outcomes, "Item": item, **condition}}
        if after == before or not receipt.caller:
            return [put]
        sums = dict.fromkeys(_SUMS.values(), 0.0)
        for counted, sign in ((before, -1), (after, 1)):
            if counted and counted[0] in _SUMS:
                sums[_SUMS[counted[0]]] += sign * counted[1]
        if not any(sums.values()):
            return [put]
        add = {
            "TableName": self.tallied,
            "Key": {"id": {"S": id}, "caller": {"S": receipt.caller}},
            "UpdateExpression": "ADD successes :successes, failures :failures",
            "ExpressionAttributeValues": {f":{name}": {"N": repr(value)} for name, value in sums.items()},
        }
        return [put, {"Update": add}]


def _too_many_writers(table: str) -> DependencyFailed:
    return DependencyFailed(f"{table} is written by too many at once; try again")


_ABSENT = {"ConditionExpression": "attribute_not_exists(query_id)"}


def _key(query_id: str, item: str) -> dict[str, Any]:
    return {"query_id": {"S": query_id}, "item": {"S": item}}


def _events(row: Row) -> frozenset[Event]:
    return frozenset(map(Event, row["events"]["SS"]))


_FIELDS = ("id", "caller", "successes", "failures")
_MOST = 50  # Values of a key in one statement


class DynamoTallies(InTable):
    """The port `TallyBook`. One request for up to 50 capabilities: a Query for each would open as many connections."""

    def tallies(self, ids: Collection[Id]) -> Mapping[Id, Sequence[Tally]]:
        distinct, found = list(dict.fromkeys(ids)), defaultdict[Id, list[Tally]](list)
        for start in range(0, len(distinct), _MOST):
            for row in self.tables.select(self.table, _FIELDS, "id", distinct[start : start + _MOST]):
                sums = {name: float(row.get(name, {"N": "0"})["N"]) for name in _SUMS.values()}
                found[Id(row["id"]["S"])].append(Tally(caller=row["caller"]["S"], **sums))
        return {id: sorted(tallies, key=lambda each: each.caller) for id, tallies in found.items()}


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
