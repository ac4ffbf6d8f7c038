"""Calls as IAM sees them, and calls that fail."""

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from tests.aws.bedrock import BedrockServer
from tests.aws.recorder import Act, Cut, Recorder, Refuse, Stall, every, nth
from tests.aws.tables import credentials
from tests.aws.tests.small_template import allow, deployed, item

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/Registry"


@pytest.fixture
def recorder(aws: Callable[[str], Any], dynamodb_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    deployed(aws)
    with Recorder(dynamodb=dynamodb_url) as recorder:
        for name, value in recorder.environment().items():
            monkeypatch.setenv(name, value)
        yield recorder


def _once(service: str) -> Any:
    return boto3.client(service, config=Config(retries={"total_max_attempts": 1}))


@pytest.mark.server
def test_calls_to_dynamodb_are_recorded_as_iam_sees_them(recorder: Recorder) -> None:
    client = _once("dynamodb")
    client.batch_get_item(RequestItems={"Registry": {"Keys": [item("a")]}})
    check = {"TableName": "Registry", "Key": item("b"), "ConditionExpression": "attribute_not_exists(#n)"}
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": "Registry", "Item": item("a")}},
            {"ConditionCheck": {**check, "ExpressionAttributeNames": {"#n": "name"}}},
        ]
    )
    assert recorder.needs == [
        (f"dynamodb:{action}", TABLE) for action in ("BatchGetItem", "PutItem", "ConditionCheckItem")
    ]
    assert [call.writes for call in recorder.calls] == [False, True]


@pytest.mark.server
def test_a_service_that_nobody_expected_is_refused_and_named(recorder: Recorder) -> None:
    with pytest.raises(ClientError, match="AccessDenied"):
        _once("sqs").list_queues()
    assert recorder.needs == [("sqs:ListQueues", "*")]
    assert recorder.strangers == ["other ListQueues, signed as sqs"]


@pytest.mark.server
def test_the_nth_write_can_be_refused_or_lost_or_done_without_an_answer(recorder: Recorder) -> None:
    client = _once("dynamodb")

    def there(name: str) -> bool:
        return "Item" in client.get_item(TableName="Registry", Key=item(name))

    recorder.play = nth(2, Refuse(400, "ThrottlingException"), writes=True)
    client.put_item(TableName="Registry", Item=item("first"))
    with pytest.raises(ClientError, match="ThrottlingException"):
        client.put_item(TableName="Registry", Item=item("second"))
    for number, act in enumerate([Cut(), Cut(after=True)]):
        recorder.play = nth(1, act, service="dynamodb", operation="PutItem")
        with pytest.raises(ConnectionClosedError):
            client.put_item(TableName="Registry", Item=item(f"cut{number}"))
    recorder.play = None
    assert [there(name) for name in ("first", "second", "cut0", "cut1")] == [True, False, False, True]


def test_a_model_may_be_invoked_through_its_profile_only(recorder_of_models: Recorder) -> None:
    through = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-micro-v1:0"
    only = {"StringEquals": {"bedrock:InferenceProfileArn": through}}
    model = "arn:aws:bedrock:*::foundation-model/amazon.nova-micro-v1:0"
    statements = [
        allow(["bedrock:InvokeModel"], through),
        {**allow(["bedrock:InvokeModel"], model), "Condition": only},
    ]
    message = [{"role": "user", "content": [{"text": "Hello"}]}]
    _once("bedrock-runtime").converse(modelId="us.amazon.nova-micro-v1:0", messages=message)
    assert recorder_of_models.refused(statements) == []
    assert len(recorder_of_models.refused(statements[:1])) == 3


@pytest.fixture
def recorder_of_models(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    credentials(monkeypatch)
    with BedrockServer() as bedrock, Recorder(bedrock=bedrock.url) as recorder:
        for name, value in recorder.environment().items():
            monkeypatch.setenv(name, value)
        yield recorder


@pytest.mark.parametrize("act", [Refuse(), Stall(60)])
def test_a_service_can_be_down_or_silent_for_all_calls(recorder_of_models: Recorder, act: Act) -> None:
    recorder_of_models.play = every(act, service="bedrock")
    config = Config(retries={"total_max_attempts": 1}, read_timeout=1)
    client = boto3.client("bedrock-runtime", config=config)
    for _ in range(2):
        with pytest.raises((ClientError, ReadTimeoutError)):
            client.invoke_model(modelId="amazon.titan-embed-text-v2:0", body=b'{"inputText": "x"}')
    assert len(recorder_of_models.calls) == 2
