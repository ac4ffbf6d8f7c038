"""The synthesized template, cut down to the path of one table's changes, and events that take it."""

import json
from collections.abc import Callable
from typing import Any

from tests.aws.deployment import Deployment
from tests.aws.dynamodb import make_tables
from tests.aws.event_path import Deliver
from tests.aws.runtime import Invocation

ANSWER = Invocation(response={"batchItemFailures": []})
KEYS = [{"AttributeName": "namespace", "KeyType": "HASH"}, {"AttributeName": "name", "KeyType": "RANGE"}]
STREAM = {"Fn::GetAtt": ["Registry", "StreamArn"]}
BUS = {"Fn::GetAtt": ["Bus", "Arn"]}


def allow(actions: list[str], resource: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resource}


def role(*statements: dict[str, Any]) -> dict[str, Any]:
    document = {"Statement": list(statements)}
    return {"Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyName": "p", "PolicyDocument": document}]}}


def template() -> dict[str, Any]:
    """The synthesized template, cut down to one table's path."""
    queue, dead = ({"Fn::GetAtt": [name, "Arn"]} for name in ("Changes", "Dead"))
    reads = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
    consumes = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    sender = {
        **allow(["sqs:SendMessage"], queue),
        "Principal": {"Service": "events.amazonaws.com"},
        "Condition": {"ArnEquals": {"aws:SourceArn": {"Fn::GetAtt": ["Changed", "Arn"]}}},
    }
    properties: dict[str, tuple[str, dict[str, Any]]] = {
        "Registry": (
            "AWS::DynamoDB::Table",
            {
                "KeySchema": KEYS,
                "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in ("namespace", "name")],
                "StreamSpecification": {"StreamViewType": "KEYS_ONLY"},
            },
        ),
        "Bus": ("AWS::Events::EventBus", {"Name": "mats"}),
        "Stream": (
            "AWS::Lambda::EventSourceMapping",
            {
                "EventSourceArn": STREAM,
                "FunctionName": {"Ref": "Streams"},
                "StartingPosition": "TRIM_HORIZON",
                "BatchSize": 10,
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
                "DestinationConfig": {"OnFailure": {"Destination": dead}},
            },
        ),
        "Streams": (
            "AWS::Lambda::Function",
            {"Handler": "handler.handle", "Role": {"Fn::GetAtt": ["StreamsRole", "Arn"]}},
        ),
        "Changed": (
            "AWS::Events::Rule",
            {
                "EventBusName": {"Ref": "Bus"},
                "EventPattern": {"source": ["mats.registry"], "detail-type": ["CapabilityChanged"]},
                "Targets": [{"Id": "0", "Arn": queue}],
            },
        ),
        "Changes": (
            "AWS::SQS::Queue",
            {
                "VisibilityTimeout": 60,
                "RedrivePolicy": {"maxReceiveCount": 3, "deadLetterTargetArn": dead},
            },
        ),
        "Dead": ("AWS::SQS::Queue", {}),
        "Policy": (
            "AWS::SQS::QueuePolicy",
            {"Queues": [{"Ref": "Changes"}], "PolicyDocument": {"Statement": [sender]}},
        ),
        "Function": (
            "AWS::Lambda::Function",
            {"Handler": "handler.handle", "Timeout": 30, "Role": {"Fn::GetAtt": ["Role", "Arn"]}},
        ),
        "Mapping": (
            "AWS::Lambda::EventSourceMapping",
            {
                "EventSourceArn": queue,
                "FunctionName": {"Ref": "Function"},
                "BatchSize": 4,
                "FunctionResponseTypes": ["ReportBatchItemFailures"],
            },
        ),
    }
    resources: dict[str, Any] = {id: {"Type": type, "Properties": given} for id, (type, given) in properties.items()}
    resources["StreamsRole"] = role(
        allow(reads, STREAM), allow(["events:PutEvents"], BUS), allow(["sqs:SendMessage"], dead)
    )
    resources["Role"] = role(allow(consumes, queue))
    return {"Resources": resources}


def without_streams() -> Deployment:
    cut = template()
    del cut["Resources"]["Stream"]
    return Deployment(cut)


def deployed(aws: Callable[[str], Any], **mapping: Any) -> Deployment:
    """With these properties of the stream's mapping."""
    given = template()
    given["Resources"]["Stream"]["Properties"] |= mapping
    deployment = Deployment(given)
    make_tables(deployment, aws("dynamodb"))
    return deployment


def item(name: str, **more: str) -> dict[str, Any]:
    return {key: {"S": value} for key, value in {"namespace": "com.acme", "name": name, **more}.items()}


def changed(name: str, source: str = "mats.registry") -> dict[str, str]:
    detail = json.dumps({"keys": item(name)})
    return {"EventBusName": "mats", "Source": source, "DetailType": "CapabilityChanged", "Detail": detail}


def name_of(record: dict[str, Any]) -> str:
    return str(json.loads(record["body"])["detail"]["keys"]["name"]["S"])


def note_names(got: list[str]) -> Deliver:
    """A function that notes the names it is told, and never fails."""

    def invoke(event: dict[str, Any]) -> Invocation:
        got.extend(map(name_of, event["Records"]))
        return ANSWER

    return invoke
