"""Invariants of the templates under every context."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from functools import reduce
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from infra.constructs.discovery_api import CALLS
from infra.sizes import MAX_RECEIVES
from infra.vendor import ROOT
from mats.adapters.dynamodb.profiles import _KEY
from mats.settings import Settings
from tests.aws import iam
from tests.aws.deployment import Deployment, Resource, texts
from tests.aws.queues import queues_of
from tests.aws.state_machine import started_by_schedule
from tests.conftest import skip_or_fail
from tests.infra.synth import CONTEXTS, JWT, deployment, templates
from tests.pages import blocks

pytestmark = pytest.mark.server

OF_THE_CDK = "Custom"  # How the ids of functions begin that the CDK brings and runs at deployment only
FUNCTIONS = ("discovery", "enrichment", "maintenance", "learner")  # Those that reach the index


@pytest.fixture(params=CONTEXTS.values(), ids=CONTEXTS)
def any_deployment(request: pytest.FixtureRequest) -> Deployment:
    """The stacks as each of the contexts makes them."""
    return deployment(**request.param)


@pytest.fixture(scope="module")
def trial() -> Deployment:
    return deployment()


def function(deployed: Deployment, name: str) -> Resource:
    return deployed.one("AWS::Lambda::Function", f"{name}Function")


def allows(deployed: Deployment, name: str) -> list[iam.Statement]:
    return iam.statements(deployed, iam.role_of(deployed, function(deployed, name)))


def actions(statements: list[iam.Statement], service: str) -> set[str]:
    return {action for one in statements for action in texts(one["Action"]) if action.startswith(f"{service}:")}


def identity_statements(deployed: Deployment) -> Iterator[iam.Statement]:
    """Every statement of every policy that says what a principal may do."""
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        for policy in deployed.all(kind):
            yield from policy["PolicyDocument"]["Statement"]
    for role in deployed.all("AWS::IAM::Role"):
        for policy in role.get("Policies", []):
            yield from policy["PolicyDocument"]["Statement"]


def people(deployed: Deployment, who: str) -> list[iam.Statement]:
    policies = [one for one in deployed.all("AWS::IAM::ManagedPolicy") if one.id.startswith(f"People{who}")]
    return [statement for one in policies for statement in one["PolicyDocument"]["Statement"]]


def domain_path(deployed: Deployment, path: str) -> str:
    return f"{deployed.one('AWS::OpenSearchService::Domain').arn}/{path}"


READS = ("GetItem", "BatchGetItem", "Query", "Scan", "PartiQLSelect")
WRITES = (
    "PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete",
    "DeleteTable",
)  # fmt: skip
CALLS_OF_TABLES: dict[str, dict[str, set[str]]] = {
    "discovery": {
        "Callers": {"GetItem"}, "Receipts": {"PutItem"},
    },
    "feedback": {
        "Receipts": {"GetItem"}, "Outcomes": {"Query", "PutItem", "UpdateItem"},
    },
    "enrichment": {
        "Registry": {"BatchGetItem", "Scan"}, "Trust": {"BatchGetItem"},
        "Profiles": {"GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem"},
    },
    "learner": {
        "Registry": {"BatchGetItem"}, "Outcomes": {"Query", "DeleteItem"},
    },
    "maintenance": {
        "Registry": {"BatchGetItem", "Scan"}, "Trust": {"BatchGetItem"},
        "Profiles": {"GetItem", "BatchGetItem", "Scan"}, "Outcomes": {"Scan"},
    },
}  # fmt: skip
"""Calls that a function may make of each table: of rows by their key, and of a namespace as any owner has."""
METHODS_OF_INDEX = {
    "discovery": {"Post"}, "feedback": set[str](), "enrichment": {"Post", "Put", "Get"},
    "learner": {"Post", "Put", "Get"}, "maintenance": {"Post", "Put", "Get", "Delete"},
}  # fmt: skip
PATHS_OF_INDEX = {
    "discovery": {
        True: ("Post capabilities/_search", "Post capabilities/_mget", "Post memory/_search"),
        False: ("Post capabilities-1/_search", "Post capabilities/_bulk", "Post capabilities/_doc/_search"),
    },
    "enrichment": {
        True: ("Post capabilities-1-write/_bulk", "Put capabilities-1", "Get _alias/capabilities"),
        False: (
            "Post _aliases", "Post capabilities-1/_delete_by_query", "Post capabilities/_search", "Post _bulk",
            "Post capabilities-1/_bulk", "Post capabilities-1/_doc/_bulk",
            "Post capabilities-1-write/_doc/x-write/_bulk", "Put capabilities-1/_settings",
            "Put capabilities-1/_mapping", "Put capabilities-1/_alias/a", "Put capabilities-1/_doc/a",
            "Put capabilities-1/_block/write", "Put capabilities-1/", "Put other-1", "Post other/_bulk",
            "Put _cluster/settings", "Post _reindex",
        ),
    },
    "learner": {
        True: ("Post memory-1024-write/_bulk", "Put memory-1024", "Get _alias/memory"),
        False: (
            "Post _aliases", "Post memory-1024/_delete_by_query", "Post memory-1024-write/_doc/x-write/_bulk",
            "Put memory-1024/_settings", "Post capabilities-1-write/_bulk", "Put capabilities-1", "Delete memory-1024",
        ),
    },
    "maintenance": {
        True: ("Delete capabilities-1", "Post _aliases", "Get _alias/memory", "Post capabilities-1/_delete_by_query"),
        False: (
            "Put memory-1024", "Delete memory-1024", "Post memory/_search", "Delete capabilities-1/_doc/a",
            "Put capabilities-1/_settings", "Post capabilities-1/_doc/_search",
            "Post capabilities-1/_doc/a-write/_bulk", "Put _cluster/settings", "Delete other-1", "Post _reindex",
            "Delete capabilities-1,memory-1024", "Post capabilities-1,memory-1024/_delete_by_query",
        ),
    },
}  # fmt: skip
"""Calls of the domain that a function may make, and that it may not."""


def test_functions_make_their_calls_of_tables_and_no_others(any_deployment: Deployment):
    tables = any_deployment.all("AWS::DynamoDB::Table")
    call = {"dynamodb:LeadingKeys": "com.acme", "dynamodb:FullTableScan": "false"}
    signed = {method["AuthorizationType"] for method in methods(any_deployment)} == {"AWS_IAM"}
    for name, expected in CALLS_OF_TABLES.items():
        allowed = allows(any_deployment, name)
        may = {
            table["TableName"].rpartition("-")[2].title(): {
                each for each in (*READS, *WRITES) if iam.allowed(allowed, f"dynamodb:{each}", table.arn, call)
            }
            for table in tables
        }
        known = {table: calls for table, calls in expected.items() if signed or table != "Callers"}
        assert {table: calls for table, calls in may.items() if calls} == known, name
        services = {action.split(":")[0] for one in allowed for action in texts(one["Action"])}
        assert services <= {"es", "dynamodb", "bedrock", "events", "sqs", "logs", "ec2", "kms", "xray"}
        asks_models, tells = name in ("discovery", "enrichment"), name in ("enrichment", "maintenance")
        assert actions(allowed, "bedrock") <= ({"bedrock:InvokeModel"} if asks_models else set())
        assert actions(allowed, "events") == ({"events:PutEvents"} if tells else set())
    profiles = any_deployment.one("AWS::DynamoDB::Table", "Profiles").arn
    of_the_list = {"dynamodb:LeadingKeys": _KEY["namespace"]["S"]}
    assert iam.allowed(allows(any_deployment, "maintenance"), "dynamodb:PutItem", profiles, of_the_list)


def test_functions_make_their_calls_of_the_domain_and_no_others(any_deployment: Deployment):
    for name, may in METHODS_OF_INDEX.items():
        assert actions(allows(any_deployment, name), "es") == {f"es:ESHttp{method}" for method in may}
    for name, calls in PATHS_OF_INDEX.items():
        allowed = allows(any_deployment, name)
        for expected, call in ((expected, call) for expected, listed in calls.items() for call in listed):
            method, path = call.split()
            assert iam.allowed(allowed, f"es:ESHttp{method}", domain_path(any_deployment, path)) is expected, (
                name,
                call,
            )
    queries = [
        arn for one in allows(any_deployment, "discovery") if actions([one], "es") for arn in texts(one["Resource"])
    ]
    assert queries == [domain_path(any_deployment, call.split()[1]) for call in PATHS_OF_INDEX["discovery"][True]]


def test_a_small_deployment_has_a_bucket_in_place_of_a_domain_and_each_function_its_rights():
    small = deployment(size="small")
    assert small.all("AWS::OpenSearchService::Domain") == small.all("AWS::CloudWatch::Dashboard") == []
    bucket = small.one("AWS::S3::Bucket").arn
    record, head = f"{bucket}/index/capabilities-1/log/000000000001", f"{bucket}/index/HEAD"
    rights = {name: allows(small, name) for name in FUNCTIONS}
    for name, statements in rights.items():
        creates = iam.allowed(statements, "s3:PutObject", record, {"s3:if-none-match": "*"})
        assert creates == (name in ("enrichment", "maintenance"))
        assert iam.allowed(statements, "s3:PutObject", head, {}) == (name == "maintenance")
        assert iam.allowed(statements, "s3:DeleteObject", record, {}) == (name == "maintenance")
        assert iam.allowed(statements, "s3:ListBucket", bucket, {})
    assert iam.allowed(rights["discovery"], "s3:GetObject", record, {})
    environments = [each.get("Environment", {}) for each in small.all("AWS::Lambda::Function")]
    assert not [each for each in environments if "MATS_METRICS" in each.get("Variables", {})], "they cost by name"


def test_without_a_rerank_model_discovery_may_only_encode():
    deployed = deployment(**CONTEXTS["vpc, jwt, no rerank model"])
    bedrock = [one for one in allows(deployed, "discovery") if "bedrock:InvokeModel" in texts(one["Action"])]
    assert [one["Resource"] for one in bedrock] == [
        f"arn:aws:bedrock:{deployed.region}::foundation-model/amazon.titan-embed-text-v2:0"
    ]


def test_every_environment_can_be_read_by_its_function(any_deployment: Deployment):
    for name in FUNCTIONS:
        settings = Settings.from_env(function(any_deployment, name)["Environment"]["Variables"])
        assert settings.in_aws
        assert settings.bedrock
        assert settings.encoder in ("amazon.titan-embed-text-v2:0", "none")
        assert settings.metrics == any_deployment.one("AWS::Events::EventBus")["Name"]
    if any(each for each in any_deployment.all("AWS::Lambda::Function") if "AuthorizerFunction" in each.id):
        settings = Settings.from_env(function(any_deployment, "authorizer")["Environment"]["Variables"])
        assert (settings.jwt_issuer, settings.jwt_audience) == (JWT["jwt_issuer"], JWT["jwt_audience"])


def test_maintenance_starts_every_night_and_when_the_stack_has_changed(any_deployment: Deployment):
    machine = any_deployment.one("AWS::StepFunctions::StateMachine", "Repair")
    assert machine["StateMachineName"] == f"{any_deployment.one('AWS::Events::EventBus')['Name']}-maintenance"
    assert [(each.id, given) for each, given in started_by_schedule(any_deployment)] == [
        (machine.id, {"task": "reconcile"})
    ]
    pattern = any_deployment.one("AWS::Events::Rule", "Deployed")["EventPattern"]
    (stack,) = pattern["detail"].pop("stack-id")
    assert stack == any_deployment.resolve({"Ref": "AWS::StackId"}, machine.stack)
    assert pattern["detail"]["status-details"]["status"][0] == "CREATE_COMPLETE"


def test_only_numbered_versions_of_discovery_can_be_deleted(any_deployment: Deployment):
    machine = any_deployment.one("AWS::StepFunctions::StateMachine", "Repair")
    allowed = iam.statements(any_deployment, iam.role_of(any_deployment, machine))
    discovery = function(any_deployment, "discovery")
    assert iam.allowed(allowed, "lambda:DeleteFunction", f"{discovery.arn}:3")
    assert not iam.allowed(allowed, "lambda:DeleteFunction", discovery.arn)
    assert iam.allowed(allowed, "lambda:ListAliases", discovery.arn)
    assert not iam.allowed(allowed, "lambda:DeleteFunction", f"{function(any_deployment, 'enrichment').arn}:3")


@pytest.mark.parametrize(("named", "sources"), [
    ("enrichment", {"mats.enrichment", "mats.maintenance"}), ("maintenance", {"mats.maintenance"}),
])  # fmt: skip
def test_a_function_puts_events_of_its_own_sources_on_the_bus(trial: Deployment, named: str, sources: set[str]):
    bus = trial.one("AWS::Events::EventBus").arn
    every = ("mats.enrichment", "mats.maintenance", "mats.registry", "mats.outcomes")
    rights = allows(trial, named)
    assert {s for s in every if iam.allowed(rights, "events:PutEvents", bus, {"events:source": s})} == sources


def test_operators_start_watch_and_stop_maintenance(any_deployment: Deployment):
    machine = any_deployment.one("AWS::StepFunctions::StateMachine", "Repair")
    allowed = people(any_deployment, "Operators")
    run = machine.arn.replace(":stateMachine:", ":execution:") + ":one"
    assert iam.allowed(allowed, "states:StartExecution", machine.arn)
    assert iam.allowed(allowed, "states:DescribeExecution", run)
    assert iam.allowed(allowed, "states:StopExecution", run)


ALWAYS: dict[str, dict[str, object]] = {
    "DynamoDB::Table": {
        "SSESpecification/SSEEnabled": True,
        "PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled": True,
        "BillingMode": "PAY_PER_REQUEST",
    },
    "SQS::Queue": {"SqsManagedSseEnabled": True},
    "OpenSearchService::Domain": {
        "EncryptionAtRestOptions/Enabled": True,
        "NodeToNodeEncryptionOptions/Enabled": True,
        "DomainEndpointOptions/EnforceHTTPS": True,
        "DomainEndpointOptions/TLSSecurityPolicy": "Policy-Min-TLS-1-2-PFS-2023-10",
        # a path is a border because bodies may not name an index
        "AdvancedOptions/rest.action.multi.allow_explicit_index": "false",
    },
    "ApiGateway::Stage": {"TracingEnabled": True, "MethodSettings/0/DataTraceEnabled": False},
    "Lambda::Function": {
        "Runtime": "python3.13",
        "Architectures": ["arm64"],
        "Handler": "handler.handle",
        "LoggingConfig/LogFormat": "JSON",
        "TracingConfig/Mode": "Active",
    },
}
"""Properties under every context; of functions, those of our own."""


def test_properties_that_every_context_has(any_deployment: Deployment):
    for kind, expected in ALWAYS.items():
        found = [each for each in any_deployment.all(f"AWS::{kind}") if not each.id.startswith(OF_THE_CDK)]
        assert found, kind
        for resource, (path, value) in product(found, expected.items()):
            assert reduce(lambda at, key: at[int(key) if key.isdecimal() else key], path.split("/"), resource) == value
    assert len(any_deployment.all("AWS::DynamoDB::Table")) == 6
    functions = [each for each in any_deployment.all("AWS::Lambda::Function") if not each.id.startswith(OF_THE_CDK)]
    assert len(functions) in (6, 7)
    assert {len(each["Layers"]) for each in functions} == {2}
    assert [log.id for log in any_deployment.all("AWS::Logs::LogGroup") if not log.get("RetentionInDays")] == []


def test_the_tables_outlive_their_stack():
    tables = [one for one in templates()["mats-data"]["Resources"].values() if one["Type"] == "AWS::DynamoDB::Table"]
    assert {(one["DeletionPolicy"], one["UpdateReplacePolicy"]) for one in tables} == {
        ("RetainExceptOnCreate", "Retain")
    }


def test_the_diagram_of_the_stacks_has_every_table(trial: Deployment):
    drawn = next(block.text for block in blocks(ROOT / "docs" / "aws.md") if block.language == "mermaid")
    named = set(re.findall(r"\w+", " ".join(re.findall(r'\[\("(.*?)"\)\]', drawn)))) - {"br", "OpenSearch"}
    assert named == {table["TableName"].removeprefix("mats-") for table in trial.all("AWS::DynamoDB::Table")}


def test_tables_can_be_deleted_only_where_a_first_creation_has_to_be_undone():
    assert all(
        table["DeletionProtectionEnabled"] for table in deployment(**CONTEXTS["production"]).all("AWS::DynamoDB::Table")
    )
    assert not any(table["DeletionProtectionEnabled"] for table in deployment().all("AWS::DynamoDB::Table"))


def test_streams_carry_keys_only(trial: Deployment):
    streams = {each["TableName"]: each.get("StreamSpecification") for each in trial.all("AWS::DynamoDB::Table")}
    keys = {"StreamViewType": "KEYS_ONLY"}
    silent = dict.fromkeys(("mats-profiles", "mats-callers", "mats-receipts"))
    assert streams == {"mats-registry": keys, "mats-trust": keys, "mats-outcomes": keys, **silent}


def test_receipts_expire_and_outcomes_stay(trial: Deployment):
    expiring = {each["TableName"] for each in trial.all("AWS::DynamoDB::Table") if each.get("TimeToLiveSpecification")}
    assert expiring == {"mats-profiles", "mats-receipts", "mats-outcomes"}


@pytest.mark.parametrize("table", ["trust", "callers"])
def test_only_operators_write_what_operators_say(any_deployment: Deployment, table: str):
    arn = next(
        each.arn for each in any_deployment.all("AWS::DynamoDB::Table") if each["TableName"].endswith(f"-{table}")
    )
    operators = people(any_deployment, "Operators")
    writing = [
        one
        for one in identity_statements(any_deployment)
        if any(iam.allowed([{**one, "Condition": {}}], f"dynamodb:{call}", arn) for call in WRITES)
    ]
    assert writing
    assert all(one in operators for one in writing)


def test_owners_reach_only_rows_of_the_namespaces_in_their_tags(any_deployment: Deployment):
    of_key = {"kms:Decrypt", "kms:DescribeKey"}
    for one in people(any_deployment, "Owners"):
        condition = one["Condition"]
        if set(texts(one["Action"])) == of_key:
            assert "kms:ViaService" in condition["StringEquals"]
            continue
        keys = condition["ForAllValues:StringEquals"]["dynamodb:LeadingKeys"]
        assert all(key.startswith("${aws:PrincipalTag/mats-namespace") for key in keys)
        assert condition["Null"] == {"dynamodb:LeadingKeys": "false", "aws:PrincipalTag/mats-namespace": "false"}
        assert set(texts(one["Action"])) <= {
            f"dynamodb:{call}" for call in (*WRITES[:4], "GetItem", "BatchGetItem", "Query")
        }


def test_owners_only_read_profiles(trial: Deployment):
    profiles = trial.one("AWS::DynamoDB::Table", "Profiles").arn
    calls = [
        call for one in people(trial, "Owners") if profiles in texts(one["Resource"]) for call in texts(one["Action"])
    ]
    assert sorted(calls) == ["dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"]


def test_agents_call_the_api_and_nothing_else(any_deployment: Deployment):
    (one,) = people(any_deployment, "Agents")
    assert texts(one["Action"]) == ["execute-api:Invoke"]
    below = ("/GET/capabilities/*", "/GET/agents/*")
    assert all("/live/" in arn and (arn.endswith(below) or "*" not in arn) for arn in one["Resource"])
    assert all(any(path in arn for arn in one["Resource"]) for path in ("POST/search", "GET/agents", "GET/.well-known"))
    called = {arn.partition("/live/")[2] for arn in one["Resource"]}
    assert {"POST/discover", "POST/mcp", "GET/mcp"} <= called
    assert len(called) == len(CALLS)


def test_whoever_uses_a_table_may_use_its_key():
    """Functions, owners and operators: without it every call of a table or a stream is denied."""
    context = CONTEXTS["private, a VPC and a key of one's own"]
    deployed, key = deployment(**context), context["kms_key_arn"]
    via = {"kms:ViaService": f"dynamodb.{deployed.region}.amazonaws.com"}
    rights: dict[str, list[iam.Statement]] = {}
    for policy in (*deployed.all("AWS::IAM::Policy"), *deployed.all("AWS::IAM::ManagedPolicy")):
        rights[policy.id] = policy["PolicyDocument"]["Statement"]
    for role in deployed.all("AWS::IAM::Role"):
        inline = role.get("Policies", [])
        rights[role.id] = [statement for one in inline for statement in one["PolicyDocument"]["Statement"]]
    users = {id for id, found in rights.items() if "dynamodb:" in json.dumps(found)}
    assert len(users) == len(CALLS_OF_TABLES) + len(("streams", "owners", "operators"))
    assert {id for id in users if not iam.allowed(rights[id], "kms:Decrypt", key, via)} == set()


def test_operators_can_redrive_every_dead_letter_queue(trial: Deployment):
    allowed = people(trial, "Operators")
    for queue in trial.all("AWS::SQS::Queue"):
        dead = queue["QueueName"].endswith("-dead")
        assert iam.allowed(allowed, "sqs:StartMessageMoveTask", queue.arn) is dead
        assert iam.allowed(allowed, "sqs:SendMessage", queue.arn) is not dead


def test_operators_can_do_what_the_runbook_asks(trial: Deployment):
    allowed = people(trial, "Operators")
    for table, call in (
        ("Registry", "DeleteItem"), ("Trust", "DeleteItem"), ("Profiles", "PutItem"), ("Profiles", "UpdateItem"),
        ("Profiles", "DeleteItem"), ("Profiles", "Query"), ("Profiles", "BatchGetItem"), ("Registry", "BatchGetItem"),
    ):  # fmt: skip
        assert iam.allowed(allowed, f"dynamodb:{call}", trial.one("AWS::DynamoDB::Table", table).arn), "mats erase"
    assert iam.allowed(allowed, "events:PutEvents", trial.one("AWS::Events::EventBus").arn)
    assert not iam.allowed(allowed, "dynamodb:PutItem", trial.one("AWS::DynamoDB::Table", "Registry").arn)
    here = f"arn:aws:events:{trial.region}:{trial.account}"
    assert iam.allowed(allowed, "lambda:GetFunctionConfiguration", function(trial, "enrichment").arn)
    assert iam.allowed(
        allowed, "events:StartReplay", f"{here}:archive/{trial.one('AWS::Events::Archive')['ArchiveName']}"
    )
    assert iam.allowed(allowed, "events:StartReplay", f"{here}:replay/yesterday")


def test_no_wildcard_is_on_a_data_action(any_deployment: Deployment):
    without_data = {"cloudwatch:PutMetricData", "dynamodb:ListStreams", "logs", "xray"}
    for one in identity_statements(any_deployment):
        for action in texts(one["Action"]):
            assert "*" not in action, one
            if "*" in texts(one["Resource"]):
                assert action in without_data or action.split(":")[0] in without_data, one


BUS = "AWS::Events::EventBus"


def streams_of(deployed: Deployment) -> list[Resource]:
    mappings = deployed.all("AWS::Lambda::EventSourceMapping")
    return [each for each in mappings if "/stream/" in each["EventSourceArn"]]


def test_a_dead_letter_queue_is_at_every_hop(any_deployment: Deployment):
    queues = {each["QueueName"]: each for each in any_deployment.all("AWS::SQS::Queue")}
    dead = {each.arn for name, each in queues.items() if name.endswith("-dead")}
    streams = streams_of(any_deployment)
    given_up = [one["DestinationConfig"]["OnFailure"]["Destination"] for one in streams]
    for rule, queue in (("Changed", "PathChanges"), ("Reported", "PathReports"), ("Removed", "PathReports")):
        targets = any_deployment.one("AWS::Events::Rule", rule)["Targets"]
        given_up += [target["DeadLetterConfig"]["Arn"] for target in targets]
        given_up += [any_deployment.one("AWS::SQS::Queue", queue)["RedrivePolicy"]["deadLetterTargetArn"]]
    assert len(streams) == 3
    assert set(given_up) == dead
    may_move = {each["RedriveAllowPolicy"]["redrivePermission"] for each in queues.values() if each.arn in dead}
    assert may_move == {"byQueue", "denyAll"}


def test_each_hop_may_put_what_it_gives_up_into_its_queue(trial: Deployment):
    allowed, bus = allows(trial, "streams"), trial.one(BUS).arn
    for stream in streams_of(trial):
        assert iam.allowed(allowed, "sqs:SendMessage", stream["DestinationConfig"]["OnFailure"]["Destination"])
        assert iam.allowed(allowed, "dynamodb:GetRecords", stream["EventSourceArn"])
    for source, may in (("mats.registry", True), ("mats.outcomes", True), ("mats.maintenance", False)):
        assert iam.allowed(allowed, "events:PutEvents", bus, {"events:source": source}) is may
    open_to_rule = {
        each["PolicyDocument"]["Statement"][i]["Resource"]
        for each in trial.all("AWS::SQS::QueuePolicy")
        for i, one in enumerate(each["PolicyDocument"]["Statement"])
        if one["Effect"] == "Allow" and one["Principal"] == {"Service": "events.amazonaws.com"}
    }
    targets = [
        t for rule in ("Changed", "Reported", "Removed") for t in trial.one("AWS::Events::Rule", rule)["Targets"]
    ]
    assert open_to_rule == {arn for target in targets for arn in (target["Arn"], target["DeadLetterConfig"]["Arn"])}


def test_queues_are_spoken_to_only_over_tls(any_deployment: Deployment):
    closed = {
        one["Resource"]
        for policy in any_deployment.all("AWS::SQS::QueuePolicy")
        for one in policy["PolicyDocument"]["Statement"]
        if one["Effect"] == "Deny" and one["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    }
    assert closed == {each.arn for each in any_deployment.all("AWS::SQS::Queue")}


def test_a_message_stays_hidden_for_longer_than_enrichment_may_take_and_not_for_much_longer(trial: Deployment):
    hidden = trial.one("AWS::SQS::Queue", "PathChanges")["VisibilityTimeout"]
    limit = function(trial, "enrichment")["Timeout"]
    assert limit < hidden <= limit + 120  # what fails waits this long


def test_few_batches_run_at_once(any_deployment: Deployment):
    streams = {each.id for each in streams_of(any_deployment)}
    mappings = [e for e in any_deployment.all("AWS::Lambda::EventSourceMapping") if e.id not in streams]
    for mapping in mappings:
        assert 2 <= mapping["ScalingConfig"]["MaximumConcurrency"] <= 10
    queues = {any_deployment.one("AWS::SQS::Queue", name).arn for name in ("PathChanges", "PathReports")}
    assert {mapping["EventSourceArn"] for mapping in mappings} == queues
    assert all(mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for mapping in mappings)


def test_the_numbers_that_the_path_suite_plays_outlive_an_outage_of_an_afternoon(any_deployment: Deployment):
    followed = [queue for queue in queues_of(any_deployment).values() if queue.dead]
    assert {queue.name for queue in followed} == {"mats-changes", "mats-reports"}
    for queue in followed:
        assert queue.limit == MAX_RECEIVES
        assert timedelta(hours=4) <= queue.limit * queue.visibility <= queue.retention / 2
        assert queue.dead
        assert queue.dead.retention >= queue.retention
    for stream in streams_of(any_deployment):  # Lambda tries until the record is too old, a little before it expires
        assert timedelta(hours=12) <= timedelta(seconds=stream["MaximumRecordAgeInSeconds"]) < timedelta(hours=24)
        assert (stream.get("MaximumRetryAttempts", -1), stream["BisectBatchOnFunctionError"]) == (-1, True)
        assert (stream["FunctionResponseTypes"], stream["StartingPosition"]) == (
            ["ReportBatchItemFailures"],
            "TRIM_HORIZON",
        )
        assert stream["DestinationConfig"]["OnFailure"]["Destination"].endswith("-dead")


def test_another_engine_upgrades_the_domain_and_the_functions_know_its_scores():
    for version, context in (("2.19", "trial"), ("3.5", "production, bigger")):
        deployed = deployment(**CONTEXTS[context])
        domain = deployed.one("AWS::OpenSearchService::Domain")
        assert domain["EngineVersion"] == f"OpenSearch_{version}"
        variables = function(deployed, "discovery")["Environment"]["Variables"]
        assert Settings.from_env(variables).index_engine == version
    made = templates()["mats"]["Resources"].values()
    (policy,) = [one["UpdatePolicy"] for one in made if one["Type"] == "AWS::OpenSearchService::Domain"]
    assert policy == {"EnableVersionUpgrade": True}


def test_the_index_knows_the_roles_of_the_functions_and_nobody_else(any_deployment: Deployment):
    said = any_deployment.one("AWS::OpenSearchService::Domain")["AccessPolicies"]["Statement"]
    for name in FUNCTIONS:
        role = iam.role_of(any_deployment, function(any_deployment, name)).arn
        own = [one for one in allows(any_deployment, name) if actions([one], "es")]
        given = [
            {key: one[key] for key in ("Action", "Effect", "Resource")}
            for one in said
            if one["Principal"] == {"AWS": role}
        ]
        assert given == own
    assert {one["Principal"]["AWS"] for one in said} == {
        iam.role_of(any_deployment, function(any_deployment, name)).arn for name in FUNCTIONS
    }


def test_production_survives_the_loss_of_a_zone():
    cluster = deployment(size="production").one("AWS::OpenSearchService::Domain")["ClusterConfig"]
    assert (cluster["InstanceCount"], cluster["DedicatedMasterEnabled"]) == (3, False)
    assert cluster["ZoneAwarenessConfig"] == {"AvailabilityZoneCount": 3}


def test_dedicated_masters_are_of_a_type_that_the_region_offers():
    for region, offered in {"us-east-1": "m7g.medium.search", "eu-south-1": "m6g.large.search"}.items():
        deployed = deployment(region=region, size="production", masters="true")
        cluster = deployed.one("AWS::OpenSearchService::Domain")["ClusterConfig"]
        assert (cluster["DedicatedMasterCount"], cluster["DedicatedMasterType"]) == (3, offered)


def methods(deployed: Deployment) -> list[Resource]:
    return deployed.all("AWS::ApiGateway::Method")


def test_nobody_is_let_in_unauthorized(any_deployment: Deployment):
    assert {one["AuthorizationType"] for one in methods(any_deployment)} <= {"AWS_IAM", "CUSTOM"}
    assert len(methods(any_deployment)) == len(CALLS)


def test_calls_go_to_the_alias_that_starts_from_a_snapshot(trial: Deployment):
    alias = trial.one("AWS::Lambda::Alias", "Online").ref
    assert function(trial, "discovery")["SnapStart"] == {"ApplyOn": "PublishedVersions"}
    others = [one for one in methods(trial) if alias not in one["Integration"]["Uri"]]
    assert [function(trial, "feedback").arn in one["Integration"]["Uri"] for one in others] == [True]


def test_calls_are_counted_logged_and_limited(any_deployment: Deployment):
    stage = any_deployment.one("AWS::ApiGateway::Stage")
    assert json.loads(stage["AccessLogSetting"]["Format"])["status"] == "$context.status"
    (every,) = stage["MethodSettings"]
    assert every["ThrottlingRateLimit"] > 0


def test_every_error_of_the_gateway_is_a_problem(any_deployment: Deployment):
    answers = {one["ResponseType"]: one for one in any_deployment.all("AWS::ApiGateway::GatewayResponse")}
    for one in answers.values():
        assert one["ResponseParameters"]["gatewayresponse.header.Content-Type"] == "'application/problem+json'"
        body = one["ResponseTemplates"]["application/json"].replace("$context.error.messageString", '"said"')
        problem: dict[str, Any] = json.loads(body)
        assert problem["title"]
        assert problem["detail"]
        assert problem["message"] == problem["detail"]
        assert re.fullmatch("[A-Z_]+", problem["errorCode"])
        if "StatusCode" in one.raw:
            assert problem["status"] == int(one["StatusCode"])
    statuses = {one.get("StatusCode") for one in answers.values()}
    assert {"401", "403", "404", "413", "429", "503", None} <= statuses
    assert {"DEFAULT_4XX", "DEFAULT_5XX"} <= set(answers)
    assert '"errorCode": "UNAUTHENTICATED"' in answers["UNAUTHORIZED"]["ResponseTemplates"]["application/json"]
    assert '"errorCode": "RATE_LIMIT_EXCEEDED"' in answers["THROTTLED"]["ResponseTemplates"]["application/json"]
    assert "gatewayresponse.header.Retry-After" in answers["THROTTLED"]["ResponseParameters"]


def test_the_authorizer_stands_outside_the_vpc():
    deployed = deployment(**CONTEXTS["vpc, jwt, no rerank model"])
    assert "VpcConfig" not in function(deployed, "authorizer").raw
    assert all("VpcConfig" in function(deployed, name).raw for name in FUNCTIONS)


def test_a_vpc_has_no_way_to_the_internet(any_deployment: Deployment):
    for kind in ("NatGateway", "InternetGateway", "EIP"):
        assert any_deployment.all(f"AWS::EC2::{kind}") == []
    rules = any_deployment.all("AWS::EC2::SecurityGroupIngress")
    assert all((one["FromPort"], one["ToPort"]) == (443, 443) and "SourceSecurityGroupId" in one.raw for one in rules)


def test_other_accounts_may_call_where_they_are_named():
    policy = deployment(**CONTEXTS["callers"]).one("AWS::ApiGateway::RestApi")["Policy"]
    conditions = [one["Condition"]["StringEquals"] for one in policy["Statement"]]
    assert conditions == [
        {"aws:PrincipalAccount": "123456789012"},
        {"aws:PrincipalAccount": ["111122223333", "444455556666"]},
        {"aws:PrincipalOrgID": ["o-a1b2c3d4e5"]},
    ]
    assert "Policy" not in deployment().one("AWS::ApiGateway::RestApi").raw


def test_another_resource_policy_is_another_deployment_of_the_api():
    ids = {deployment(**CONTEXTS[c]).one("AWS::ApiGateway::Deployment").id for c in ("trial", "callers")}
    assert len(ids) == 2


@pytest.mark.parametrize("context", ["private", "private, a VPC and a key of one's own"])
def test_a_private_api_answers_through_its_endpoint_only(context: str):
    deployed = deployment(**CONTEXTS[context])
    api = deployed.one("AWS::ApiGateway::RestApi")
    configuration = api["EndpointConfiguration"]
    assert configuration["Types"] == ["PRIVATE"]
    (endpoint,) = configuration["VpcEndpointIds"]
    for one in api["Policy"]["Statement"]:
        assert one["Condition"]["StringEquals"]["aws:SourceVpce"] == endpoint


def test_what_smoke_looks_for_is_put_out():
    outputs = {name for template in templates().values() for name in template["Outputs"]}
    assert {"ApiUrl", "RegistryTable", "ProfilesTable", "DiscoveryFunction", "EnrichmentFunction"} <= outputs


def test_cfn_lint_finds_no_error(tmp_path: Path):
    """In one process, as its start takes longer than a template; templates that are alike are read once."""
    if find_spec("cfnlint") is None:
        skip_or_fail("cfn-lint (pip install -r requirements.txt)")
    made = {
        json.dumps(one): f"{label}, {name}" for label, c in CONTEXTS.items() for name, one in templates(**c).items()
    }
    for text, name in made.items():
        (tmp_path / f"{name}.json").write_text(text)
    run = subprocess.run(
        # W3005: the CDK's own DependsOn. W3010: zones are named on purpose, a look-up would need the account.
        [
            str(Path(sys.executable).with_name("cfn-lint")), "--ignore-checks", "W3005", "W3010",
            "--", *map(str, tmp_path.glob("*.json")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout


def test_cdk_nag_would_have_said_so():
    templates()
    from aws_cdk import App, Stack
    from aws_cdk import aws_sqs as sqs

    from infra.stacks import add_stacks

    app = App(context={"aws:cdk:bundling-stacks": []})
    add_stacks(app)
    sqs.Queue(Stack(app, "careless"), "Queue")
    with pytest.raises(RuntimeError, match="AwsSolutions-SQS4"):
        app.synth()


def test_app_py_needs_no_account_no_docker_and_no_network(tmp_path: Path):
    templates()
    guessed = {"CDK_DEFAULT_REGION": "me-central-1"}  # which the CDK says without credentials, and has no models
    said = run_app(tmp_path, {"aws:cdk:bundling-stacks": []}, guessed)
    assert said.returncode == 0, said.stderr
    assert {path.name for path in tmp_path.glob("*.template.json")} == {"mats.template.json", "mats-data.template.json"}


def test_app_py_says_what_is_wrong_in_words(tmp_path: Path):
    templates()
    said = run_app(tmp_path, {"size": "huge", "masters": "perhaps"})
    assert said.returncode == 1
    assert said.stderr.splitlines()[0] == "The context is invalid:"
    assert len(said.stderr.splitlines()) == 3


def run_app(
    outdir: Path, context: dict[str, Any], more: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    ours = ("AWS_", "CDK_", "PYTHON", "JSII")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    told = {
        "CDK_OUTDIR": str(outdir),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "DOCKER_HOST": "tcp://127.0.0.1:9",
        **(more or {}),
    }
    return subprocess.run(
        [sys.executable, "app.py"], cwd=ROOT, env={**kept, **told}, capture_output=True, text=True, check=False
    )
