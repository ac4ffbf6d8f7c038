"""SQS batches to the change processor over fakes."""

import json
from dataclasses import replace

from mats.domain.errors import DependencyFailed, ModelRefused
from mats.edge.changes import ChangeProcessor, process_batch
from mats.edge.observers import LOG, MeasureObserver, Observers
from mats.ports import Measure, ModelsRefused, QueuedChange
from mats.usecases.deadline import Deadline
from tests.aws_events import sqs_batch
from tests.builders import a_registration
from tests.fakes import FakeEncoder, ScriptedWriter, raising
from tests.world import World


def message(name: str, *, id: str | None = None) -> QueuedChange:
    return QueuedChange(
        1, id or f"m-{name}", "Registry", "INSERT", a_registration(name=name).id, "2026-01-01T00:00:00Z", 1
    )


def process(batch: dict, world: World, **more) -> dict:
    return process_batch(batch, ChangeProcessor(world.enrich, dict, **more))


def failures(response: dict) -> list[str]:
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


def test_unreadable_message_fails_alone():
    world = World(encoder=FakeEncoder())
    world.registry.put([a_registration(name="a")])
    batch = sqs_batch([message("a")])
    batch["Records"].append({"messageId": "m-bad", "body": "not an event"})
    assert failures(process(batch, world)) == ["m-bad"]
    assert len(world.profiles.kept) == 1


def test_every_batch_is_measured_even_if_it_fails(monkeypatch):
    world, measured = World(encoder=FakeEncoder()), []
    world.registry.put([a_registration(name="a")])
    process(sqs_batch([message("a"), message("gone")]), world, observe=MeasureObserver(measured.append))
    assert measured[0]["Indexed"].value == 1
    assert measured[0]["Unchanged"].value == 1
    monkeypatch.setattr(world.registry, "get", raising(DependencyFailed("down")))
    batch = sqs_batch([message("a"), message("b")])
    assert failures(process(batch, world, observe=MeasureObserver(measured.append))) == ["m-a", "m-b"]
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
    assert failures(process(sqs_batch([message(n) for n in "abc"]), world)) == ["m-b"]
    assert len(world.profiles.kept) == 2


def test_refused_model_ends_the_messages_with_one_metric_and_a_log_line(caplog):
    refused = ModelRefused("lite cannot be used", model="lite", cause="AccessDeniedException: no")
    world, measured = World(encoder=FakeEncoder(), writer=ScriptedWriter(lambda registration: refused)), []
    world.registry.put([a_registration(name=n) for n in "ab"])

    def record(measures, dimensions=None):
        measured.append((measures, dimensions))

    observe = Observers([LOG, MeasureObserver(record)])
    world.enrich = replace(world.enrich, on_refuse=lambda refused: observe(ModelsRefused(refused=refused)))
    with caplog.at_level("ERROR", "mats"):
        assert failures(process(sqs_batch([message("a"), message("b")]), world, observe=observe)) == []
    assert measured[0] == ({"ModelRefused": Measure(2, "Count")}, {})
    assert measured[1] == ({"ModelRefused": Measure(2, "Count")}, {"model": "lite", "role": "writer"})
    assert measured[2][0]["Refused"].value == 2
    (line,) = (json.loads(record.getMessage()) for record in caplog.records)
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
    assert failures(process_batch(sqs_batch([message("a"), message("b")]), processor, Deadline(lambda: left[0]))) == [
        "m-b"
    ]
