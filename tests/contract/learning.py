"""Receipts and reports for the contract suites of learning."""

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Feedback, Outcome, Receipt, pack_vector
from mats.domain.search.verdict import Verdict

PAY, SHIP, WRAP = Id("com.acme/pay"), Id("com.acme/ship"), Id("com.acme/wrap it")
AT = "2026-01-01T00:00:00+00:00"


def a_receipt(query_id: str = "q1", **changes) -> Receipt:
    """A receipt of an answer that showed three capabilities."""
    fields = {
        "query_id": query_id,
        "text": "pay and ship",
        "caller": "arn:aws:iam::1:role/bot",
        "audiences": frozenset({"staff", "eu"}),
        "at": AT,
        "shown": (PAY, SHIP, WRAP),
        "verdict": Verdict.MATCH,
        "nearest": PAY,
        "encoder": "fake",
        "vector": pack_vector([0.5, -0.25]),
    }
    return Receipt(**{**fields, **changes})


def a_feedback(receipt: Receipt, *outcomes: tuple[Id, Event], missing: str = "") -> Feedback:
    """Feedback of the receipt's caller."""
    listed = tuple(Outcome(*each) for each in outcomes)
    return Feedback(query_id=receipt.query_id, caller=receipt.caller, outcomes=listed, missing=missing)
