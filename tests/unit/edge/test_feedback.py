"""`POST /feedback` through API Gateway's events."""

import json
import logging

import pytest

from mats.domain.errors import DependencyFailed
from mats.edge.api_gateway import parse_request
from mats.edge.feedback import FeedbackService, respond_alone
from mats.edge.routes import respond
from mats.local.log import record_fields
from tests.aws_events import proxy_request
from tests.fakes import raising
from tests.world import ANN, THREE, World, an_application


class FeedbackWorld(World):
    """Three capabilities, and feedback through the whole service or its own function."""

    def __init__(self) -> None:
        super().__init__(*THREE)

    def ask(self, path: str, body: object, *, arn: str = ANN, alone: bool = False) -> tuple[int, dict]:
        if not alone:
            return super().ask(path, body, arn=arn)
        event = proxy_request("POST", path, {}, json.dumps(body).encode(), ())
        event["requestContext"] |= {"identity": {"userArn": arn}, "requestId": "request 1"}
        response = respond_alone(self.service, parse_request(event))
        return response.status, json.loads(response.body)

    def search(self, **query) -> dict:
        return self.ask("/discover", {"query": "address coordinates", **query})[1]


@pytest.fixture
def world() -> FeedbackWorld:
    return FeedbackWorld()


def outcome(answer: dict, event: str = "succeeded", place: int = 0) -> dict:
    return {"id": answer["results"][place]["id"], "event": event}


@pytest.mark.parametrize("alone", [False, True], ids=["whole service", "own function"])
def test_feedback_is_recorded_once(world, alone):
    answer = world.search()
    body = {"query_id": answer["query_id"], "outcomes": [outcome(answer)], "missing": "a map"}
    assert world.ask("/feedback", body, alone=alone) == (
        202,
        {"query_id": answer["query_id"], "recorded": 1, "missing": True},
    )
    assert world.ask("/feedback", body, alone=alone) == (
        202,
        {"query_id": answer["query_id"], "recorded": 0, "missing": True},
    )
    found = world.outcomes.of(answer["query_id"])
    assert found.missing == "a map"
    assert found.receipt.caller == "arn:aws:sts::111122223333:role/ann".replace("sts", "iam")
    assert found.events == {answer["results"][0]["id"]: {"succeeded"}}


@pytest.mark.parametrize(("changes", "field"), [
    ({"outcomes": [{"id": "a/b", "event": "succeeded"}] * 51}, "outcomes"),
    ({"outcomes": [{"id": "a/b", "event": "great"}]}, "outcomes.0.event"),
    ({"outcomes": [{"id": "", "event": "wrong"}]}, "outcomes.0.id"),
    ({"outcomes": [{"id": "a" * 301, "event": "wrong"}]}, "outcomes.0.id"),
    ({"outcomes": [{"id": "a/b", "event": "wrong", "why": "?"}]}, "outcomes.0.why"),
    ({"missing": "m" * 2_001}, "missing"), ({"query_id": ""}, "query_id"), ({"query_id": "q" * 101}, "query_id"),
    ({"id": "a/b"}, "id"), ({"outcomes": {"a/b": "succeeded"}}, "outcomes"),
])  # fmt: skip
def test_what_breaks_the_contract_is_named(world, changes, field):
    status, problem = world.ask("/feedback", {"query_id": "q", "outcomes": [], "missing": "m", **changes})
    assert status == 422
    assert [error["field"] for error in problem["errors"]] == [field]


def test_a_store_that_does_not_answer_is_503_and_counted(world, monkeypatch):
    monkeypatch.setattr(world.receipts, "get", raising(DependencyFailed("the table did not answer")))
    status, problem = world.ask("/feedback", {"query_id": "q", "missing": "m"})
    assert (status, problem["detail"]) == (503, "discovery cannot answer now; try again")
    assert world.measured[-1]["Failed"].value == 1


def test_without_receipts_there_is_nothing_to_report_on(world):
    event = proxy_request("POST", "/feedback", {}, b'{"query_id": "q", "missing": "m"}', ())
    response = respond(an_application(*THREE), parse_request(event))
    assert response.status == 409
    assert "MATS_RECEIPT_DAYS" in response.body


def test_feedback_is_logged_and_measured(world, caplog):
    caplog.set_level(logging.INFO, "mats")
    answer = world.search()
    outcomes = [outcome(answer, "selected"), outcome(answer, "succeeded"), outcome(answer, "failed", place=1)]
    world.ask("/feedback", {"query_id": answer["query_id"], "outcomes": outcomes, "missing": "a map"})
    record = record_fields(caplog.records[-1])
    assert record == {
        "event": "feedback", "query_id": answer["query_id"], "outcomes": outcomes, "recorded": 3, "missing": "a map",
        "request_id": "request 1",
    }  # fmt: skip
    counts = {name: measure.value for name, measure in world.measured[-1].items()}
    assert counts == {
        "Feedback": 1, "Failed": 0, "OutcomesSelected": 1, "OutcomesSucceeded": 1, "OutcomesFailed": 1,
        "OutcomesWrong": 0,
    }  # fmt: skip


def test_words_are_logged_as_a_hash_where_queries_are(world, caplog):
    caplog.set_level(logging.INFO, "mats")
    answer = world.search()
    silent = FeedbackService(world.service.record, world.observer(spell_out=False))
    world.service = silent
    world.ask("/feedback", {"query_id": answer["query_id"], "missing": "a map"}, alone=True)
    record = record_fields(caplog.records[-1])
    assert "a map" not in str(record)
    assert len(record["missing_hash"]) == 32
