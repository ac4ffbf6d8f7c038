"""Receipts in DynamoDB, under the key `query_id`; DynamoDB deletes each within days of `expires_at`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mats.adapters.clock import Retention
from mats.adapters.dynamodb.tables import Row, Tables, from_row, to_row
from mats.domain.learning.outcome import Receipt


@dataclass(frozen=True, slots=True)
class DynamoReceipts:
    """The port `Receipts`."""

    tables: Tables
    table: str
    retention: Retention

    def put(self, receipt: Receipt) -> None:
        expiry = {"expires_at": {"N": str(self.retention.expires_at())}}
        self.tables.ask(self.table, "put_item", Item={**receipt_row(receipt), **expiry})

    def put_all(self, receipts: Sequence[Receipt]) -> None:
        """Each by itself. Raises as `put` does."""
        for receipt in receipts:
            self.put(receipt)

    def get(self, query_id: str) -> Receipt | None:
        answer = self.tables.ask(self.table, "get_item", Key={"query_id": {"S": query_id}}, ConsistentRead=True)
        row = answer.get("Item")
        if row is None or int(row["expires_at"]["N"]) <= self.retention.now():
            return None
        return receipt_of(row)


def receipt_row(receipt: Receipt) -> dict[str, Any]:
    """The attributes of a receipt."""
    relevance = None if receipt.relevance is None else round(receipt.relevance, _DIGITS)
    row = to_row({**receipt.to_json(), "relevance": relevance})
    return {**row, **({} if receipt.vector is None else {"vector": {"B": receipt.vector}})}


def receipt_of(row: Row) -> Receipt:
    """The receipt of a row."""
    fields = from_row(row)
    return Receipt.from_json(fields, bytes(fields["vector"]) if "vector" in fields else None)
