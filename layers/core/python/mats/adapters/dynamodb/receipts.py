"""Receipts in DynamoDB, under the key `query_id`; DynamoDB deletes each within days of `expires_at`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mats.adapters.clock import Retention
from mats.adapters.dynamodb.tables import Row, Tables, from_row, to_row
from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Receipt
from mats.domain.ranking.blend import Verdict

_DIGITS = 6


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
    fields = {
        "query_id": receipt.query_id,
        "text": receipt.text,
        "caller": receipt.caller,
        "audiences": sorted(receipt.audiences),
        "at": receipt.at,
        "shown": list(receipt.shown),
        "verdict": receipt.verdict,
        "nearest": receipt.nearest,
        "relevance": None if receipt.relevance is None else round(receipt.relevance, _DIGITS),
        "narrowed": receipt.narrowed,
        "encoder": receipt.encoder,
    }
    return {**to_row(fields), **({} if receipt.vector is None else {"vector": {"B": receipt.vector}})}


def receipt_of(row: Row) -> Receipt:
    """The receipt of a row."""
    fields: Mapping[str, Any] = from_row(row)
    relevance = fields.get("relevance")
    return Receipt(
        query_id=fields["query_id"],
        text=fields["text"],
        caller=fields["caller"],
        audiences=frozenset(fields["audiences"]),
        at=fields["at"],
        shown=tuple(map(Id, fields["shown"])),
        verdict=Verdict(fields["verdict"]) if "verdict" in fields else None,
        nearest=Id(fields["nearest"]) if "nearest" in fields else None,
        relevance=None if relevance is None else float(relevance),
        narrowed=fields["narrowed"],
        encoder=fields["encoder"],
        vector=bytes(fields["vector"]) if "vector" in fields else None,
    )
