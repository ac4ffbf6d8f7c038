"""The servers and stand-ins that other suites trust."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from email.message import Message
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from tests.conftest import ROOT, skip_or_fail
from tests.servers import iam, maven
from tests.servers.bedrock import BedrockServer
from tests.servers.calls import Account, Service
from tests.servers.deployment import Deployment, Misconfigured
from tests.servers.dynamodb import DynamoDBLocal, make_tables
from tests.servers.input_template import rendered
from tests.servers.jvm import ServerFailed
from tests.servers.patterns import UnknownOperator, matches
from tests.servers.pipe import Chaos, Deliver, EventPath
from tests.servers.recorder import Act, Cut, Hook, Recorder, Refuse, Stall, every, nth
from tests.servers.runtime import Function, Invocation, metrics
from tests.servers.tables import credentials

ANSWER = Invocation(response={"batchItemFailures": []})

# --- real servers ---


@pytest.mark.server
def test_a_stream_of_dynamodb_local_tells_every_change(aws: Callable[[str], Any]) -> None:
    path = EventPath(_deployed(aws), aws)
    for name in ("a", "b", "a"):
        aws("dynamodb").put_item(TableName="Registry", Item=_item(name, at=str(time.time_ns())))
    aws("dynamodb").delete_item(TableName="Registry", Key=_item("b"))

    path.pump()

    seen = [(event["detail"]["change"], event["detail"]["keys"]["name"]["S"]) for event in path.events]
    assert seen == [("INSERT", "a"), ("INSERT", "b"), ("MODIFY", "a"), ("REMOVE", "b")]


@pytest.mark.server
def test_an_opensearch_node_finds_by_stemmed_words_and_by_vector(opensearch_url: str) -> None:
    from opensearchpy import OpenSearch

    vector = {
        "type": "knn_vector",
        "dimension": 2,
        "method": {"name": "hnsw", "space_type": "cosinesimil", "engine": "lucene"},
    }
    body = {
        "settings": {"index": {"knn": True, "number_of_replicas": 0}},
        "mappings": {"properties": {"text": {"type": "text", "analyzer": "english"}, "vector": vector}},
    }
    with OpenSearch(hosts=[opensearch_url]) as client:
        client.indices.create(index="servers", body=body)
        for id, text, at in (("1", "refunding cards", [1, 0]), ("2", "weather", [0, 1])):
            client.index(index="servers", id=id, body={"text": text, "vector": at}, refresh=True)
        queries = ({"match": {"text": "refunds"}}, {"knn": {"vector": {"vector": [0.1, 1], "k": 1}}})
        found = [client.search(index="servers", body={"query": query})["hits"]["hits"][0]["_id"] for query in queries]
        client.indices.delete(index="servers")
    assert found == ["1", "2"]


@pytest.mark.server
def test_a_java_server_ends_with_the_process_that_started_it_even_when_that_is_killed() -> None:
    _require(DynamoDBLocal)
    script = (
        "import sys\nfrom tests.servers.dynamodb import DynamoDBLocal\n"
        "with DynamoDBLocal() as server: print(server.pid, server.folder, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        pid, folder = parent.stdout.readline().split()
        parent.kill()
    try:
        _wait_until(lambda: not _runs(int(pid)))
    finally:
        shutil.rmtree(folder)


@pytest.mark.server
def test_a_server_that_does_not_start_shows_its_log() -> None:
    _require(DynamoDBLocal)
    with pytest.raises(ServerFailed, match="Too small maximum heap"), DynamoDBLocal(java_options=["-Xmx1k"]):
        pass


def test_a_server_is_put_together_completely_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, tools = tmp_path / "java" / "toy", tmp_path / "bin"
    source.mkdir(parents=True)
    tools.mkdir()
    for name, content in (("pom.xml", "<project/>"), ("Toy.java", "class Toy {}")):
        (source / name).write_text(content)
    monkeypatch.setattr(maven, "SOURCES", source.parent)
    monkeypatch.setattr(maven, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    _script(tools / "mvn", 'for a; do case $a in -Ddist=*) touch "${a#-Ddist=}/half";; esac; done; echo broken; exit 1')
    _script(tools / "javac", "exit 0")
    with pytest.raises(maven.AssemblyFailed, match="broken"):
        maven.assembled("toy")
    assert not list((tmp_path / "cache").glob("toy-*"))

    _script(tools / "mvn", 'for a; do case $a in -Ddist=*) touch "${a#-Ddist=}/whole";; esac; done')
    home = maven.assembled("toy")
    assert [path.name for path in home.iterdir()] == ["whole"]
    assert maven.assembled("toy") == home
    (source / "Toy.java").write_text("class Toy { int changed; }")
    assert maven.assembled("toy") != home


# --- the runtime ---

HANDLER = """
import json, os, sys, time
print("started")
def handle(event, context):
    print(json.dumps({"asked": event}))
    if event == "metrics":
        print(json.dumps({"_aws": {"Timestamp": 0, "CloudWatchMetrics": [
            {"Namespace": "mats", "Dimensions": [[]], "Metrics": [{"Name": "TotalMs"}]}]}, "TotalMs": 3}))
    if event == "raise": raise ValueError("on purpose")
    if event == "exit": os._exit(3)
    if event == "wait": time.sleep(60)
    return {"environment": dict(os.environ), "left_ms": context.get_remaining_time_in_millis()}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "handler.py").write_text(HANDLER)
    return tmp_path


def test_a_function_sees_the_template_s_environment_and_none_of_ours(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAKED", "1")
    with Function(folder=folder, environment={"GIVEN": "x"}, around={"AROUND": "y"}, timeout_s=30) as function:
        first, second = function.invoke("a"), function.invoke("b")
    environment = first.response["environment"]
    assert (environment["GIVEN"], environment["AROUND"], environment["AWS_REGION"]) == ("x", "y", "us-east-1")
    assert "LEAKED" not in environment
    assert 0 < first.response["left_ms"] <= 30_000
    assert first.lines == ("started", '{"asked": "a"}')
    assert second.records == [{"asked": "b"}]
    assert first.cold_ms is not None
    assert second.cold_ms is None


@pytest.mark.parametrize(("event", "kind"), [("raise", "ValueError"), ("exit", "Runtime.ExitError")])
def test_an_error_is_told_and_the_next_event_is_answered(folder: Path, event: str, kind: str) -> None:
    with Function(folder=folder) as function:
        failed = function.invoke(event)
        assert failed.error is not None
        assert failed.error["errorType"] == kind
        assert function.invoke("a").error is None


def test_a_function_that_takes_too_long_is_killed(folder: Path) -> None:
    with Function(folder=folder, timeout_s=1) as function:
        failed = function.invoke("wait")
        assert failed.error is not None
        assert "Task timed out after 1.00 seconds" in failed.error["errorMessage"]
        assert function.invoke("a").cold_ms is not None


def test_a_function_that_cannot_be_imported_says_so_each_time(folder: Path) -> None:
    with Function(folder=folder, handler="absent.handle") as function:
        errors = [function.invoke("a").error for _ in range(2)]
    assert [error and error["errorType"] for error in errors] == ["Runtime.ImportModuleError"] * 2


def test_a_variable_that_lambda_sets_itself_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="AWS_REGION"):
        Function(folder=folder, environment={"AWS_REGION": "eu-west-1"})


def test_a_deployed_function_is_as_its_template_says(folder: Path) -> None:
    template = _template()
    properties = template["Resources"]["Function"]["Properties"]
    properties["Environment"] = {"Variables": {"TABLE": {"Ref": "Registry"}}}
    deployment = Deployment(template)
    with pytest.raises(ValueError, match="JSON"):
        Function.deployed(deployment.one("AWS::Lambda::Function"), folder=folder)
    properties["LoggingConfig"] = {"LogFormat": "JSON"}
    with Function.deployed(deployment.one("AWS::Lambda::Function"), folder=folder) as function:
        environment = function.invoke("a").response["environment"]
    assert (environment["TABLE"], environment["_HANDLER"], function.timeout_s) == ("Registry", "handler.handle", 30)


def test_metrics_are_read_from_what_a_function_writes(folder: Path) -> None:
    with Function(folder=folder) as function:
        assert function.invoke("metrics").metrics == {"TotalMs": [3]}
    assert metrics(["no JSON", '{"no": "metric"}']) == {}


# --- templates ---

KEYS = [{"AttributeName": "namespace", "KeyType": "HASH"}, {"AttributeName": "name", "KeyType": "RANGE"}]
STREAM = {"Fn::GetAtt": ["Registry", "StreamArn"]}
BUS = {"Fn::GetAtt": ["Bus", "Arn"]}
DETAIL = '{"table": "Registry", "change": <$.eventName>, "keys": <$.dynamodb.Keys>}'


def _allow(actions: list[str], resource: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": actions, "Resource": resource}


def _role(*statements: dict[str, Any]) -> dict[str, Any]:
    document = {"Statement": list(statements)}
    return {"Type": "AWS::IAM::Role", "Properties": {"Policies": [{"PolicyName": "p", "PolicyDocument": document}]}}


def _template() -> dict[str, Any]:
    """What the stacks synthesize, cut down to one table's way."""
    queue = {"Fn::GetAtt": ["Changes", "Arn"]}
    reads = ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"]
    consumes = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    sender = {
        **_allow(["sqs:SendMessage"], queue),
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
        "Pipe": (
            "AWS::Pipes::Pipe",
            {
                "RoleArn": {"Fn::GetAtt": ["PipeRole", "Arn"]},
                "Source": STREAM,
                "SourceParameters": {"DynamoDBStreamParameters": {"StartingPosition": "TRIM_HORIZON"}},
                "Target": BUS,
                "TargetParameters": {
                    "EventBridgeEventBusParameters": {"Source": "mats.registry", "DetailType": "CapabilityChanged"},
                    "InputTemplate": DETAIL,
                },
            },
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
                "RedrivePolicy": {"maxReceiveCount": 3, "deadLetterTargetArn": {"Fn::GetAtt": ["Dead", "Arn"]}},
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
    resources["PipeRole"] = _role(_allow(reads, STREAM), _allow(["events:PutEvents"], BUS))
    resources["Role"] = _role(_allow(consumes, queue))
    return {"Resources": resources}


def _without_pipes() -> Deployment:
    template = _template()
    del template["Resources"]["Pipe"]
    return Deployment(template)


@pytest.fixture
def aws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Makes clients of DynamoDB Local."""
    url = request.getfixturevalue("dynamodb_url")
    credentials(monkeypatch, dynamodb=url, dynamodb_streams=url)

    def client(service: str) -> Any:
        return boto3.client(service)

    return client


def _deployed(aws: Callable[[str], Any]) -> Deployment:
    deployment = Deployment(_template())
    make_tables(deployment, aws("dynamodb"))
    return deployment


def _item(name: str, **more: str) -> dict[str, Any]:
    return {key: {"S": value} for key, value in {"namespace": "com.acme", "name": name, **more}.items()}


def _changed(name: str, source: str = "mats.registry") -> dict[str, str]:
    detail = json.dumps({"keys": _item(name)})
    return {"EventBusName": "mats", "Source": source, "DetailType": "CapabilityChanged", "Detail": detail}


def _name(record: dict[str, Any]) -> str:
    return str(json.loads(record["body"])["detail"]["keys"]["name"]["S"])


def _noting(got: list[str]) -> Deliver:
    """A function that notes the names it is told, and never fails."""

    def invoke(event: dict[str, Any]) -> Invocation:
        got.extend(map(_name, event["Records"]))
        return ANSWER

    return invoke


# --- the way of a change ---


@pytest.mark.server
def test_a_name_with_quotes_arrives_as_it_was_written(aws: Callable[[str], Any]) -> None:
    path = EventPath(_deployed(aws), aws)
    odd = 'a "quoted" <$.eventName> \\ name'
    aws("dynamodb").put_item(TableName="Registry", Item=_item(odd))
    got: list[str] = []
    path.run(_noting(got))
    assert got == [odd]


@pytest.mark.server
@pytest.mark.parametrize(
    ("resource", "wrong"),
    [
        ("Pipe", {"DesiredState": "STOPPED"}),
        ("Pipe", {"Source": {"Fn::GetAtt": ["Registry", "Arn"]}}),
        ("Pipe", {"Target": {"Fn::GetAtt": ["Changes", "Arn"]}}),
        ("PipeRole", {"Policies": []}),
        ("Policy", {"Queues": []}),
        ("Role", {"Policies": []}),
        ("Changes", {"VisibilityTimeout": 5}),
        ("Mapping", {"FunctionName": "absent"}),
    ],
)
def test_what_would_not_work_in_an_account_is_refused(
    aws: Callable[[str], Any], resource: str, wrong: dict[str, Any]
) -> None:
    _deployed(aws)
    template = _template()
    template["Resources"][resource]["Properties"] |= wrong
    with pytest.raises(Misconfigured):
        EventPath(Deployment(template), aws)


@pytest.mark.server
@pytest.mark.parametrize("pattern", ['{"eventName": ["INSERT"]}', '{"eventName": [{"anything-but": "REMOVE"}]}'])
def test_a_pipe_drops_what_its_filter_does_not_match(aws: Callable[[str], Any], pattern: str) -> None:
    _deployed(aws)
    template = _template()
    template["Resources"]["Pipe"]["Properties"]["SourceParameters"]["FilterCriteria"] = {
        "Filters": [{"Pattern": pattern}]
    }
    path = EventPath(Deployment(template), aws)
    aws("dynamodb").put_item(TableName="Registry", Item=_item("a"))
    aws("dynamodb").delete_item(TableName="Registry", Key=_item("a"))
    path.pump()
    assert [event["detail"]["change"] for event in path.events] == ["INSERT"]


def test_only_events_that_the_rule_matches_arrive() -> None:
    path = EventPath(_without_pipes(), boto3.client)
    path.put_events([_changed("a"), _changed("b", source="mats.enrichment")])
    got: list[str] = []
    path.run(_noting(got))
    assert got == ["a"]
    assert len(path.events) == 2
    path.repeat(2)
    path.run(_noting(got))
    assert got == ["a", "a", "a"]


def test_a_message_that_always_fails_ends_in_the_dead_letter_queue_and_can_be_redriven() -> None:
    path = EventPath(_without_pipes(), boto3.client)
    path.put_events([_changed(name) for name in "abcdef"])
    got: list[str] = []

    def invoke(event: dict[str, Any]) -> Invocation:
        got.extend(map(_name, event["Records"]))
        failed = [{"itemIdentifier": each["messageId"]} for each in event["Records"] if _name(each) == "c"]
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
    path = EventPath(_without_pipes(), boto3.client)
    path.put_events([_changed("a"), _changed("b")])
    outcomes = iter([outcome, ANSWER])
    assert path.run(lambda event: next(outcomes)) == 4


def test_chaos_repeats_and_shuffles_and_can_be_repeated_itself() -> None:
    def order(seed: int) -> list[str]:
        path = EventPath(_without_pipes(), boto3.client, chaos=Chaos(seed, duplicates=0.5))
        path.put_events([_changed(str(number)) for number in range(30)])
        got: list[str] = []
        path.run(_noting(got))
        return got

    once = order(1)
    assert once == order(1) != order(2)
    assert len(once) > 30
    assert once[:30] != sorted(once[:30], key=int)
    assert set(once) == {str(number) for number in range(30)}


CHANGE: dict[str, Any] = {"eventName": "INSERT", "dynamodb": {"Keys": {"name": {"S": 'x"y'}}, "List": [1, 2]}}


def test_an_input_template_puts_json_outside_of_quotes_and_text_inside() -> None:
    template = (
        '{"a": <$.eventName>, "b": "is <$.dynamodb.Keys.name.S>", "c": <$.dynamodb.Keys>, "d": <$.dynamodb.List[1]>}'
    )
    assert rendered(template, CHANGE) == {
        "a": "INSERT",
        "b": 'is x"y',
        "c": CHANGE["dynamodb"]["Keys"],
        "d": 2,
    }


@pytest.mark.parametrize(
    "template",
    ['{"a": <$.eventname>}', '{"a": "<$.dynamodb>"}', '{"a": <eventName>}', '{"a": <$.eventName>', '{"a": <$.*>}'],
)
def test_a_mistake_in_an_input_template_is_loud(template: str) -> None:
    with pytest.raises(Misconfigured):
        rendered(template, CHANGE)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"source": ["a", "b"]}, True),
        ({"source": ["c"]}, False),
        ({"source": [{"prefix": "a"}], "detail": {"n": [1]}}, True),
        ({"detail": {"n": [True]}}, False),
        ({"detail": {"tags": ["y"]}}, True),
        ({"detail": {"n": [{"anything-but": [1, 2]}]}}, False),
        ({"detail": {"absent": [{"anything-but": "x"}]}}, False),
        ({"detail": {"absent": [{"exists": False}], "n": [{"exists": True}]}}, True),
        ({"detail-type": ["a"]}, False),
    ],
)
def test_event_patterns_match_as_eventbridge_documents_them(pattern: dict[str, Any], expected: bool) -> None:
    assert matches(pattern, {"source": "a", "detail": {"n": 1, "tags": ["x", "y"]}}) is expected


@pytest.mark.parametrize("pattern", [{"source": "a"}, {"n": [{"numeric": [">", 1]}]}, {"$or": [{"n": [1]}]}, {"n": []}])
def test_an_event_pattern_that_is_not_understood_raises(pattern: dict[str, Any]) -> None:
    with pytest.raises(UnknownOperator):
        matches({"absent": ["x"], **pattern}, {"source": "a"})


# --- what a role allows ---


@pytest.mark.parametrize(
    ("action", "resource", "expected"),
    [
        ("es:ESHttpPost", "arn:aws:es:r:a:domain/mats/capabilities-1/_search", True),
        ("es:ESHttpPost", "arn:aws:es:r:a:domain/mats/other/_search", False),
        ("es:ESHttpPut", "arn:aws:es:r:a:domain/mats/capabilities-1/_search", False),
        ("dynamodb:getitem", "arn:aws:dynamodb:r:a:table/Registry", True),
        ("dynamodb:GetItem", "arn:aws:dynamodb:r:a:table/Registry2", False),
        ("dynamodb:GetItem", "arn:aws:dynamodb:r:a:table/Secret", False),
    ],
)
def test_statements_allow_by_wildcards_and_a_denial_wins(action: str, resource: str, expected: bool) -> None:
    policy = [
        _allow(["es:ESHttpPost"], "arn:aws:es:r:a:domain/mats/capabilities*/_search"),
        _allow(["dynamodb:Get*"], ["arn:aws:dynamodb:r:a:table/Registry", "arn:aws:dynamodb:r:a:table/Secre?"]),
        {**_allow(["dynamodb:*"], "arn:aws:dynamodb:r:a:table/Secret"), "Effect": "Deny"},
    ]
    assert iam.allowed(policy, action, resource) is expected


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Allow", "NotAction": "s:A", "Resource": "*"},
        {"Effect": "Allow", "Action": "*", "NotResource": "r"},
        {**_allow(["*"], "*"), "Condition": {"Bool": {"aws:SecureTransport": "true"}}},
        {**_allow(["*"], "*"), "Condition": {"StringEquals": {"aws:PrincipalTag/x": "y"}}},
    ],
)
def test_a_statement_that_is_not_understood_is_not_guessed(statement: dict[str, Any]) -> None:
    with pytest.raises(iam.CannotDecide):
        iam.allowed([statement], "s:B", "r2")


def test_references_are_resolved_across_stacks() -> None:
    exported = {"Export": {"Name": "first:table"}, "Value": {"Fn::GetAtt": ["Table", "Arn"]}}
    first = {"Resources": {"Table": {"Type": "AWS::DynamoDB::Table"}}, "Outputs": {"Out": exported}}
    role = _role(_allow(["dynamodb:GetItem"], {"Fn::Join": ["", [{"Fn::ImportValue": "first:table"}, "/index/*"]]}))
    deployment = Deployment(first, {"Resources": {"Role": role}})
    statements = iam.statements(deployment, deployment.one("AWS::IAM::Role"))
    assert statements[0]["Resource"] == "arn:aws:dynamodb:us-east-1:123456789012:table/Table/index/*"
    with pytest.raises(Misconfigured):
        deployment.resolve({"Ref": "Absent"})


# --- the recorder ---

TABLE = "arn:aws:dynamodb:us-east-1:123456789012:table/Registry"


@pytest.fixture
def recorder(aws: Callable[[str], Any], dynamodb_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    _deployed(aws)
    with Recorder(dynamodb=dynamodb_url) as recorder:
        for name, value in recorder.environment().items():
            monkeypatch.setenv(name, value)
        yield recorder


def _once(service: str) -> Any:
    return boto3.client(service, config=Config(retries={"total_max_attempts": 1}))


@pytest.mark.server
def test_calls_to_dynamodb_are_recorded_as_iam_sees_them(recorder: Recorder) -> None:
    client = _once("dynamodb")
    client.batch_get_item(RequestItems={"Registry": {"Keys": [_item("a")]}})
    check = {"TableName": "Registry", "Key": _item("b"), "ConditionExpression": "attribute_not_exists(#n)"}
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": "Registry", "Item": _item("a")}},
            {"ConditionCheck": {**check, "ExpressionAttributeNames": {"#n": "name"}}},
        ]
    )
    assert recorder.needs == [
        (f"dynamodb:{action}", TABLE) for action in ("BatchGetItem", "PutItem", "ConditionCheckItem")
    ]
    assert [call.writes for call in recorder.calls] == [False, True]


@pytest.mark.server
def test_events_are_accepted_and_kept(recorder: Recorder) -> None:
    answer = _once("events").put_events(Entries=[_changed("a")])
    assert answer["FailedEntryCount"] == 0
    assert recorder.needs == [("events:PutEvents", "arn:aws:events:us-east-1:123456789012:event-bus/mats")]
    assert [entry["Source"] for entry in recorder.take_entries()] == ["mats.registry"]
    assert recorder.take_entries() == []


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
        return "Item" in client.get_item(TableName="Registry", Key=_item(name))

    recorder.play = nth(2, Refuse(400, "ThrottlingException"), writes=True)
    client.put_item(TableName="Registry", Item=_item("first"))
    with pytest.raises(ClientError, match="ThrottlingException"):
        client.put_item(TableName="Registry", Item=_item("second"))
    for number, act in enumerate([Cut(), Cut(after=True)]):
        recorder.play = nth(1, act, service="dynamodb", operation="PutItem")
        with pytest.raises(ConnectionClosedError):
            client.put_item(TableName="Registry", Item=_item(f"cut{number}"))
    recorder.play = None
    assert [there(name) for name in ("first", "second", "cut0", "cut1")] == [True, False, False, True]


WRITER = """
import boto3
from botocore.config import Config
client = boto3.client("dynamodb", config=Config(retries={"total_max_attempts": 1}))
def handle(event, context):
    client.put_item(TableName="Registry", Item={"namespace": {"S": "com.acme"}, "name": {"S": event}})
"""


@pytest.mark.server
@pytest.mark.parametrize("after", [False, True])
def test_a_function_killed_at_a_write_has_written_only_if_it_was_killed_after(
    recorder: Recorder, tmp_path: Path, after: bool
) -> None:
    (tmp_path / "handler.py").write_text(WRITER)
    with Function(folder=tmp_path, around=recorder.environment()) as function:
        recorder.play = nth(1, Hook(function.kill, after=after), writes=True)
        killed = function.invoke("killed")
        recorder.settle()
        assert killed.error is not None
        assert function.invoke("again").error is None
    found = _once("dynamodb").scan(TableName="Registry")["Items"]
    assert {item["name"]["S"] for item in found} == {"again", *(["killed"] if after else [])}


@pytest.mark.parametrize(
    ("method", "target", "action", "path"),
    [
        ("POST", "/capabilities/_search?size=1", "es:ESHttpPost", "/capabilities/_search"),
        ("HEAD", "/_alias/capabilities", "es:ESHttpHead", "/_alias/capabilities"),
    ],
)
def test_a_call_to_opensearch_is_a_method_on_a_path(method: str, target: str, action: str, path: str) -> None:
    domain = "arn:aws:es:us-east-1:123456789012:domain/mats"
    assert _asked("opensearch", method, target) == [(action, domain + path)]


def test_a_model_behind_a_profile_needs_the_profile_and_the_model_everywhere() -> None:
    titan = "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0"
    asked = _asked("bedrock", "POST", "/model/amazon.titan-embed-text-v2%3A0/invoke")
    assert asked == [("bedrock:InvokeModel", titan)]
    asked = _asked("bedrock", "POST", "/model/us.amazon.nova-micro-v1%3A0/converse")
    assert [resource.split(":")[3] for _, resource in asked] == ["us-east-1", "us-east-1", "us-east-2", "us-west-2"]


def test_a_model_may_be_invoked_through_its_profile_only(recorder_of_models: Recorder) -> None:
    through = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-micro-v1:0"
    only = {"StringEquals": {"bedrock:InferenceProfileArn": through}}
    model = "arn:aws:bedrock:*::foundation-model/amazon.nova-micro-v1:0"
    statements = [
        _allow(["bedrock:InvokeModel"], through),
        {**_allow(["bedrock:InvokeModel"], model), "Condition": only},
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


def _asked(service: Service, method: str, target: str) -> list[tuple[str, str]]:
    return list(Account().read(service, method, target, Message(), b"").needs)


def _require(server: type[DynamoDBLocal]) -> None:
    if lacking := server.missing():
        skip_or_fail(lacking)


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _runs(pid: int) -> bool:
    """Whether it still runs; one that ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def _wait_until(there: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not there():
        assert time.monotonic() < give_up
        time.sleep(0.05)
