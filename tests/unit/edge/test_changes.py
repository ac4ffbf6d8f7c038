"""Which capability a message tells of, and what becomes of reported outcomes and removals."""

import json
from dataclasses import replace

import pytest

from mats.domain.errors import DependencyFailed, ModelRefused
from mats.domain.profile.profile import Cause
from mats.edge.changes import ChangeProcessor, Learner, parse_change, process_batch, process_reports
from mats.edge.observers import LOG, MeasureObserver, Observers
from mats.local.log import record_fields
from mats.ports import Change, Measure, ModelsRefused, NamespaceChange, QueuedChange
from mats.usecases.deadline import Deadline
from tests.aws_events import sqs_batch
from tests.builders import a_registration
from tests.fakes import FakeEncoder, ScriptedWriter, raising
from tests.world import World

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


def message(name: str, *, id: str | None = None) -> QueuedChange:
    return QueuedChange(
        1, id or f"m-{name}", "Registry", "INSERT", a_registration(name=name).id, "2026-01-01T00:00:00Z", 1
    )


def process(batch: dict, world: World, **more) -> dict:
    return process_batch(batch, ChangeProcessor(world.enrich, dict, **more))


def test_every_batch_is_measured_even_if_it_fails(monkeypatch):
    world, measured = World(encoder=FakeEncoder()), []
    world.registry.put([a_registration(name="a")])
    batch = sqs_batch([message("a"), message("gone")])
    batch["Records"].append({"messageId": "m-bad", "body": "not an event"})
    assert failed(process(batch, world, observe=MeasureObserver(measured.append))) == ["m-bad"]
    assert measured[0]["Indexed"].value == 1
    assert measured[0]["Unchanged"].value == 1
    monkeypatch.setattr(world.registry, "get", raising(DependencyFailed("down")))
    batch = sqs_batch([message("a"), message("b")])
    assert failed(process(batch, world, observe=MeasureObserver(measured.append))) == ["m-a", "m-b"]
    assert measured[1]["Waiting"].value == 2


def test_change_that_meets_a_bug_fails_alone(monkeypatch):
    world = World(encoder=FakeEncoder())
    world.registry.put([a_registration(name=n) for n in "abc"])
    read = world.registry.get

    def buggy(ids):
        if any(id.endswith("/b") for id in ids):
            raise ZeroDivisionError
        return read(ids)

    monkeypatch.setattr(world.registry, "get", buggy)
    measured = []
    assert failed(process(sqs_batch([message(n) for n in "abc"]), world, observe=MeasureObserver(measured.append))) == [
        "m-b"
    ]
    assert len(world.profiles.kept) == 2
    assert sum(each["Waiting"].value for each in measured) == 1


def test_refused_model_ends_the_messages_with_one_metric_and_a_log_line(caplog):
    refused = ModelRefused("lite cannot be used", model="lite", cause="AccessDeniedException: no")
    world, measured = World(encoder=FakeEncoder(), writer=ScriptedWriter(lambda registration: refused)), []
    world.registry.put([a_registration(name=n) for n in "ab"])

    def record(measures, dimensions=None):
        measured.append((measures, dimensions))

    observe = Observers([LOG, MeasureObserver(record)])
    world.enrich = replace(world.enrich, on_refuse=lambda refused: observe(ModelsRefused(refused=refused)))
    with caplog.at_level("ERROR", "mats"):
        assert failed(process(sqs_batch([message("a"), message("b")]), world, observe=observe)) == []
    assert measured[0] == ({"ModelRefused": Measure(2, "Count")}, {})
    assert measured[1] == ({"ModelRefused": Measure(2, "Count")}, {"model": "lite", "role": "writer"})
    assert measured[2][0]["Refused"].value == 2
    (line,) = map(record_fields, caplog.records)
    assert line == {
        "event": "model_refused", "role": "writer", "model": "lite", "cause": "AccessDeniedException: no", "count": 2,
    }  # fmt: skip


def test_after_a_bug_the_single_changes_keep_the_deadline(monkeypatch):
    world, left = World(encoder=FakeEncoder()), [300_000.0]
    world.registry.put([a_registration(name=n) for n in "ab"])
    read = world.registry.get

    def buggy(ids):
        left[0] -= 30_000
        if len(ids) == 2:
            raise ZeroDivisionError
        return read(ids)

    monkeypatch.setattr(world.registry, "get", buggy)
    processor = ChangeProcessor(world.enrich, dict)
    assert failed(process_batch(sqs_batch([message("a"), message("b")]), processor, Deadline(lambda: left[0]))) == [
        "m-b"
    ]
