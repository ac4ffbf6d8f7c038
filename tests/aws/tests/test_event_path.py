"""Streams, rules, queues and dead letters as a template configures them."""

from collections.abc import Callable
from typing import Any

import boto3
import pytest

from mats.adapters.eventbridge import stream_events
from tests.aws.deployment import Deployment, Misconfigured
from tests.aws.event_path import EventPath
from tests.aws.runtime import Invocation
from tests.aws.tests.small_template import (
    ANSWER,
    changed,
    deployed,
    item,
    name_of,
    note_names,
    template,
    without_streams,
)


@pytest.mark.server
def test_a_name_with_quotes_arrives_as_it_was_written(aws: Callable[[str], Any]) -> None:
    path = EventPath(deployed(aws), aws)
    odd = 'a "quoted" <$.eventName> \\ name'
    aws("dynamodb").put_item(TableName="Registry", Item=item(odd))
    got: list[str] = []
    path.run(note_names(got))
    assert got == [odd]


@pytest.mark.server
@pytest.mark.parametrize(
    ("resource", "wrong"),
    [
        ("Stream", {"Enabled": False}),
        ("Stream", {"EventSourceArn": {"Fn::GetAtt": ["Registry", "Arn"]}}),
        ("Stream", {"StartingPosition": "LATEST"}),
        ("StreamsRole", {"Policies": []}),
        ("Policy", {"Queues": []}),
        ("Role", {"Policies": []}),
        ("Changes", {"VisibilityTimeout": 5}),
        ("Mapping", {"FunctionName": "absent"}),
    ],
)
def test_what_would_not_work_in_an_account_is_refused(
    aws: Callable[[str], Any], resource: str, wrong: dict[str, Any]
) -> None:
    deployed(aws)
    cut = template()
    cut["Resources"][resource]["Properties"] |= wrong
    with pytest.raises(Misconfigured):
        EventPath(Deployment(cut), aws)


@pytest.mark.server
def test_a_batch_that_the_function_fails_at_comes_again(aws: Callable[[str], Any]) -> None:
    failing = iter([True, False, False])

    def carry(event: dict[str, Any]) -> tuple[list[dict[str, str]], None]:
        if next(failing):
            raise ConnectionError
        return stream_events("mats", event["Records"]), None

    path = EventPath(deployed(aws), aws, carry=carry)
    aws("dynamodb").put_item(TableName="Registry", Item=item("a"))
    with pytest.raises(ConnectionError):
        path.pump()
    assert (path.pump(), path.pump()) == (1, 0)
    assert [event["detail"]["change"] for event in path.events] == ["INSERT"]


@pytest.mark.server
def test_of_a_partial_response_the_named_record_and_those_after_it_come_again(aws: Callable[[str], Any]) -> None:
    batches: list[list[str]] = []

    def carry(event: dict[str, Any]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        records = event["Records"]
        batches.append([each["dynamodb"]["Keys"]["name"]["S"] for each in records])
        done = 1 if len(batches) == 1 else len(records)
        failures = [{"itemIdentifier": each["dynamodb"]["SequenceNumber"]} for each in records[done:][:1]]
        return stream_events("mats", records[:done]), {"batchItemFailures": failures}

    path = EventPath(deployed(aws), aws, carry=carry)
    for name in "abc":
        aws("dynamodb").put_item(TableName="Registry", Item=item(name))
    assert [path.pump() for _ in range(3)] == [1, 2, 0]
    assert [batch[0] for batch in batches] == ["a", "b"]
    assert len(path.events) == 3


def test_only_events_that_the_rule_matches_arrive() -> None:
    path = EventPath(without_streams(), boto3.client)
    path.put_events([changed("a"), changed("b", source="mats.enrichment")])
    got: list[str] = []
    path.run(note_names(got))
    assert got == ["a"]
    assert len(path.events) == 2
    path.repeat(2)
    path.run(note_names(got))
    assert got == ["a", "a", "a"]


def test_a_message_that_always_fails_ends_in_the_dead_letter_queue_and_can_be_redriven() -> None:
    path = EventPath(without_streams(), boto3.client)
    path.put_events([changed(name) for name in "abcdef"])
    got: list[str] = []

    def invoke(event: dict[str, Any]) -> Invocation:
        got.extend(map(name_of, event["Records"]))
        failed = [{"itemIdentifier": each["messageId"]} for each in event["Records"] if name_of(each) == "c"]
        return Invocation(response={"batchItemFailures": failed})

    path.run(invoke)
    assert sorted(got) == list("abcccdef")
    assert {name: [each.content["detail"]["keys"]["name"]["S"] for each in messages]
            for name, messages in path.waiting().items()} == {"Dead": ["c"]}  # fmt: skip
    assert path.redrive() == 1
    path.run(lambda event: ANSWER)
    assert path.waiting() == {}


@pytest.mark.parametrize(
    "outcome",
    [Invocation(error={"errorType": "x"}), Invocation(response={"batchItemFailures": [{"itemIdentifier": "absent"}]})],
)
def test_a_batch_that_failed_as_a_whole_comes_again(outcome: Invocation) -> None:
    path = EventPath(without_streams(), boto3.client)
    path.put_events([changed("a"), changed("b")])
    outcomes = iter([outcome, ANSWER])
    assert path.run(lambda event: next(outcomes)) == 4
