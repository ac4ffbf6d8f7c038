"""How long reported answers stay in DynamoDB."""

from typing import Any

import pytest

from mats.adapters.clock import FOR_EVER, Retention
from mats.adapters.dynamodb.receipts import DynamoOutcomes
from mats.domain.learning.outcome import Event, taught_id
from tests.contract.learning import PAY, a_feedback, a_receipt
from tests.fakes import FakeClock


class Recorded:
    """Tables in which nothing is, and the rows that are written."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def query(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def transact(self, table: str, actions: list[dict[str, Any]]) -> bool:
        self.rows += [action["Put"]["Item"] for action in actions if "Put" in action]
        return True


@pytest.mark.parametrize(
    ("retention", "query_id", "expires"),
    [
        (Retention(30, FakeClock()), "q1", {"N": str(1767225600 + 30 * 86_400)}),
        (Retention(30, FakeClock()), taught_id("give money back"), None),
        (FOR_EVER, "q1", None),
    ],
    ids=["thirty days", "a lesson", "for ever"],
)
def test_a_reported_answer_expires_with_its_outcomes(retention: Retention, query_id: str, expires: Any) -> None:
    tables = Recorded()
    receipt = a_receipt(query_id)
    outcomes = DynamoOutcomes(tables, "outcomes", retention=retention)  # type: ignore[arg-type]
    outcomes.record(receipt, a_feedback(receipt, (PAY, Event.SUCCEEDED)))
    assert [row["item"]["S"] for row in tables.rows] == ["receipt", f"outcome#{PAY}"]
    assert [row.get("expires_at") for row in tables.rows] == [expires, expires]
