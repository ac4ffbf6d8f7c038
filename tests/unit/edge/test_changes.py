"""Which capability a message tells of, and what becomes of reported outcomes and removals."""

import json

import pytest

from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import Cause
from mats.edge.changes import ChangeProcessor, Learner, parse_change, process_batch, process_reports
from mats.ports import Change, NamespaceChange

EVENT = {
    "version": "0",
    "id": "e-1",
    "detail-type": "CapabilityChanged",
    "source": "mats.registry",
    "time": "2026-01-01T00:00:00+00:00",
    "detail": {
        "table": "Registry",
        "change": "INSERT",
        "keys": {"namespace": {"S": "com.acme"}, "name": {"S": "docs/read"}},
    },
}


def _keys(**typed: object) -> dict[str, object]:
    return {**EVENT, "detail": {"keys": typed}}


CAUSE = Cause(event_id="e-1", time="2026-01-01T00:00:00+00:00")
ROW = {"namespace": {"S": "com.acme.*"}, "name": {"S": "*"}}
OF_A_ROW = {"table": "Trust", "change": "MODIFY", "keys": ROW}


@pytest.mark.parametrize(
    ("detail", "change"),
    [
        ({}, Change("com.acme/docs/read", CAUSE)),
        (OF_A_ROW, NamespaceChange("com.acme", CAUSE)),
        ({**OF_A_ROW, "after": "com.acme/docs"}, NamespaceChange("com.acme", CAUSE, after="com.acme/docs")),
        ({"keys": ROW}, Change("com.acme.*/*", CAUSE)),  # an item with the key of a namespace, which is a bad item
    ],
)
def test_a_message_has_the_capability_or_the_namespace_and_the_cause(detail, change):
    assert parse_change({**EVENT, "detail": {**EVENT["detail"], **detail}}) == change


UNREADABLE = [
    None, [], "text", {}, {**EVENT, "detail": None}, {**EVENT, "detail": "com.acme/x"}, {**EVENT, "detail": []},
    _keys(name={"S": "x"}), _keys(namespace={"S": "com.acme"}), {**EVENT, "id": None}, {**EVENT, "time": 3},
    {key: value for key, value in EVENT.items() if key != "id"},
    {key: value for key, value in EVENT.items() if key != "time"},
    *(
        _keys(**{"namespace": {"S": "com.acme"}, "name": {"S": "x"}, part: {"S": key}})
        for part in ("namespace", "name")
        for key in (None, 3, True, [], {}, "", "\ud800")
    ),
]  # fmt: skip
NO_JSON = [None, "", "no JSON", '{"detail":', "9" * 5_000, "[" * 100_000 + "]" * 100_000]


def test_message_without_a_change_goes_to_the_dead_letter_queue():
    bodies = [{"body": body} for body in (*NO_JSON, *map(json.dumps, UNREADABLE))]
    records = [{"messageId": str(number), **each} for number, each in enumerate([{}, *bodies])]
    response = process_batch({"Records": records}, ChangeProcessor(None, dict))
    assert failed(response) == [record["messageId"] for record in records]


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
