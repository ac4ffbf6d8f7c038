"""Events of outcomes and removals, as the queue delivers them."""

import json

import pytest

from mats.domain.errors import DependencyFailed
from mats.edge.changes import Learner, process_reports

REPORTED = {"query_id": {"S": "q1"}, "item": {"S": "receipt"}}
REMOVED = {"namespace": {"S": "com.acme"}, "name": {"S": "pay"}}


class Calls:
    """What a learner is told; it fails for the kinds named here."""

    def __init__(self, *failing: str) -> None:
        self.told: list[tuple[str, list[str]]] = []
        self.failing = failing

    def learner(self) -> Learner:
        return Learner(lambda ids: self._tell("learn", ids), lambda ids: self._tell("forget", ids))

    def _tell(self, kind: str, ids) -> None:
        if kind in self.failing:
            raise DependencyFailed(kind)
        self.told.append((kind, list(ids)))


def batch(*keys) -> dict:
    return {
        "Records": [
            {"messageId": str(number), "body": json.dumps({"detail": {"keys": each}})}
            for number, each in enumerate(keys)
        ]
    }


def failed(response: dict) -> list[str]:
    return [each["itemIdentifier"] for each in response["batchItemFailures"]]


def test_each_answer_and_each_removed_capability_is_handled_once():
    calls = Calls()
    assert failed(process_reports(batch(REPORTED, REMOVED, REPORTED, REMOVED), calls.learner())) == []
    assert calls.told == [("forget", ["com.acme/pay"]), ("learn", ["q1"])]


@pytest.mark.parametrize(("kind", "again"), [("learn", ["0"]), ("forget", ["1"])])
def test_what_waits_for_a_store_is_delivered_again_and_the_rest_is_done(kind, again):
    calls = Calls(kind)
    assert failed(process_reports(batch(REPORTED, REMOVED), calls.learner())) == again
    assert len(calls.told) == 1


@pytest.mark.parametrize(
    "keys",
    [{}, None, {"query_id": {"S": ""}}, {"query_id": "q1"}, {"namespace": {"S": "com.acme"}}, {**REMOVED, "name": {}}],
)
def test_what_names_nothing_is_given_up_alone(keys):
    calls = Calls()
    assert failed(process_reports(batch(keys, REPORTED), calls.learner())) == ["0"]
    assert calls.told == [("learn", ["q1"])]
