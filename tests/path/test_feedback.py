"""Receipts and feedback in the account on loopback: both functions, the real tables, and the roles between them."""

import threading
from typing import Any

import pytest

from mats.adapters.dynamodb.tables import from_row
from tests.path.world import ACCOUNT, Make, World, item

ANN, BOB = (f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/session" for name in ("Ann", "Bob"))
REFUND = "Give money back for a card payment"


@pytest.fixture
def found(world: World) -> World:
    world.publish(item("refund_payment", REFUND))
    return world


def rows(world: World, table: str) -> list[dict]:
    scanned = world.dynamodb.scan(TableName=world.table(table), ConsistentRead=True)
    return [from_row(row) for row in scanned["Items"]]


def receipt(world: World, query_id: str, *, complete: bool = True) -> dict:
    """The receipt of an answer; the complete one replaces the early one in the background."""
    waiting = threading.Event()
    for _ in range(200):
        found = [row for row in rows(world, "Receipts") if row["query_id"] == query_id]
        if found and ("verdict" in found[0] or not complete):
            break
        waiting.wait(0.02)
    [row] = found
    return row


def test_an_answer_leaves_a_receipt_that_its_caller_can_report_on(found: World) -> None:
    reply = found.discover("money back", caller=ANN)
    assert reply.lacks == []
    answer = reply.content
    kept = receipt(found, answer["query_id"])
    assert kept["caller"] == f"arn:aws:iam::{ACCOUNT}:role/Ann"
    assert kept["shown"] == ["com.acme/refund_payment"]
    assert len(kept["vector"]) == 2 * 1024
    body = {"query_id": answer["query_id"], "outcomes": [{"id": "com.acme/refund_payment", "event": "succeeded"}]}
    assert found.ask("POST", "/feedback", body, caller=BOB).status == 404
    told = found.ask("POST", "/feedback", body, caller=ANN)
    assert (told.status, told.content["recorded"]) == (202, 1)
    assert found.ask("POST", "/feedback", body, caller=ANN).content["recorded"] == 0
    assert {row["item"] for row in rows(found, "Outcomes")} == {"receipt", "outcome#com.acme/refund_payment"}


def test_callers_with_tokens_are_known_by_their_subject(made: Make) -> None:
    world = made(context={"auth": "jwt", "jwt_issuer": "https://issuer.example", "jwt_audience": "mats"})
    world.publish(item("refund_payment", REFUND))
    answer = world.discover("money back", vouched={"principalId": "ann", "audiences": ""}).content
    assert receipt(world, answer["query_id"])["caller"] == "ann"
    body = {"query_id": answer["query_id"], "missing": "a stamp"}
    for subject, status in (("bob", 404), ("ann", 202)):
        vouched = {"principalId": subject, "audiences": ""}
        assert world.ask("POST", "/feedback", body, vouched=vouched).status == status


def test_what_was_reported_goes_with_a_removed_capability_and_stays_with_one_that_is_back(found: World) -> None:
    other = found.publish(item("refund_status", "Shows how far a refund is"))
    answer = found.discover(REFUND, caller=ANN, min_relevance=0).content
    receipt(found, answer["query_id"])
    outcomes = [{"id": id, "event": "succeeded"} for id in ("com.acme/refund_payment", other)]
    body = {"query_id": answer["query_id"], "outcomes": outcomes, "missing": "a stamp"}
    assert found.ask("POST", "/feedback", body, caller=ANN).status == 202
    found.settle()
    assert [sorted(document["used"]) for document in found.memory()] == [["com.acme/refund_payment", other]]
    found.remove(other)
    found.remove("com.acme/refund_payment")
    found.publish(item("refund_payment", REFUND))
    assert {row["item"] for row in rows(found, "Outcomes")} == {"receipt", "outcome#com.acme/refund_payment"}
    assert [document["used"] for document in found.memory()] == [["com.acme/refund_payment"]]


def by_query(documents: list[Any]) -> dict[str, Any]:
    return {document["query_id"]: document for document in documents}


def test_what_callers_report_reaches_the_memory_and_changes_answers(found: World) -> None:
    query = {}
    for caller in (ANN, BOB):
        answer = found.discover("settle the matter of the broken vase", caller=caller, min_relevance=0).content
        receipt(found, answer["query_id"])
        body = {"query_id": answer["query_id"], "outcomes": [{"id": "com.acme/refund_payment", "event": "succeeded"}]}
        assert found.ask("POST", "/feedback", body, caller=caller).status == 202
        query[caller] = answer["query_id"]
    found.settle()
    remembered = found.memory()
    assert {document["query_id"] for document in remembered} == set(query.values())
    found.drop_indices()
    assert found.deployed()[0]["counts"] == {"sent": 2}
    found.settle()
    assert by_query(found.memory()) == by_query(
        remembered
    )  # by the stack's own event, of a domain that came back empty
    assert not [name for name in found.path.waiting() if name.endswith("-dead")]
