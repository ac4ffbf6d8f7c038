"""Streams, rules, queues and dead letters as a template configures them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import boto3
import pytest

from mats.adapters.eventbridge import stream_events
from tests.aws.deployment import Deployment, Misconfigured
from tests.aws.event_path import EventPath, Failed
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
@pytest.mark.parametrize(
    ("mapping", "failures", "batches", "given_up"),
    [
        ({}, 1, ["abcd", "abcd"], []),
        ({"BisectBatchOnFunctionError": True}, 2, ["abcd", "ab", "cd", "c", "d"], []),
        ({"MaximumRetryAttempts": 2}, 99, ["abcd", "abcd", "abcd"], [("RetryAttemptsExhausted", 4)]),
        (
            {"BisectBatchOnFunctionError": True, "MaximumRetryAttempts": 0}, 99, ["abcd", "ab", "cd", "c", "d"],
            [("RetryAttemptsExhausted", 1)],
        ),
        (
            {"BisectBatchOnFunctionError": True, "MaximumRecordAgeInSeconds": 3_600}, 99,
            ["abcd", "ab", "cd", *20 * "c"], [("RecordAgeExceeded", 1)] * 2,
        ),
    ],
)  # fmt: skip
def test_what_a_function_fails_at_is_tried_again_split_and_given_up_as_the_mapping_says(
    aws: Callable[[str], Any], mapping: dict[str, Any], failures: int, batches: list[str], given_up: list[Any]
) -> None:
    seen: list[str] = []
    failing = iter([True] * failures)

    def carry(event: dict[str, Any]) -> tuple[list[dict[str, str]], None]:
        seen.append("".join(each["dynamodb"]["Keys"]["name"]["S"] for each in event["Records"]))
        if "c" in seen[-1] and next(failing, False):
            raise Failed
        return stream_events("mats", event["Records"]), None

    path = EventPath(deployed(aws, **mapping), aws, carry=carry)
    for name in "abcd":
        aws("dynamodb").put_item(TableName="Registry", Item=item(name))
    path.run(lambda event: ANSWER)
    assert seen == batches
    dead = [message.content for message in path.waiting().get("Dead", [])]
    assert [(d["requestContext"]["condition"], d["DDBStreamBatchInfo"]["batchSize"]) for d in dead] == given_up
    lost = sum(count for _, count in given_up)
    assert len({event["detail"]["keys"]["name"]["S"] for event in path.events}) == 4 - lost


@pytest.mark.server
def test_of_a_partial_response_the_named_record_and_those_after_it_come_again(aws: Callable[[str], Any]) -> None:
    batches: list[str] = []

    def carry(event: dict[str, Any]) -> tuple[list[dict[str, str]], dict[str, Any]]:
        records = event["Records"]
        batches.append("".join(each["dynamodb"]["Keys"]["name"]["S"] for each in records))
        done = 1 if len(batches) == 1 else len(records)
        failures = [{"itemIdentifier": each["dynamodb"]["SequenceNumber"]} for each in records[done:][:1]]
        return stream_events("mats", records[:done]), {"batchItemFailures": failures}

    path = EventPath(deployed(aws), aws, carry=carry)
    for name in "abc":
        aws("dynamodb").put_item(TableName="Registry", Item=item(name))
    assert path.run(lambda event: ANSWER) == 3
    assert batches == ["abc", "bc"]


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
    begun = path.clock.now()
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
    assert timedelta(minutes=3) <= path.clock.now() - begun < timedelta(minutes=4), "three receives, a minute each"
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
