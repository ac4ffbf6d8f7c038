"""Findings in an account before a deployment, each with its remedy."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from boto3.session import Session
from botocore.awsrequest import AWSResponse
from botocore.validate import ParamValidator

from infra import preflight
from infra.context import parse
from infra.preflight import Account, CheckResult, PhysicalName, Plan, findings, plan_of
from tests.infra.synth import VPC, templates

pytestmark = pytest.mark.server

ACCOUNT = "123456789012"
RERANKER, WRITER, TITAN = "amazon.nova-micro-v1:0", "amazon.nova-lite-v1:0", "amazon.titan-embed-text-v2:0"
NAMES = {RERANKER: "Nova Micro", WRITER: "Nova Lite", TITAN: "Titan Text Embeddings V2"}
DESTINATIONS = {
    "us": ["us-east-1", "us-east-2", "us-west-2"],
    "apac": ["ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1", "ap-southeast-1", "ap-southeast-2"],
}
QUOTAS = [
    "On-demand model inference requests per minute for Amazon Nova Micro",
    "Cross-region model inference requests per minute for Amazon Nova Micro",
    "Model invocation max tokens per day for Amazon Nova Micro (doubled for cross-region calls)",
    "Cross-region model inference tokens per minute for Amazon Nova Lite",
    "On-demand model inference tokens per minute for Amazon Titan Text Embeddings V2",
]
NOW = datetime(2026, 11, 1, tzinfo=UTC)
Params = Mapping[str, Any]


class Refuse(NamedTuple):
    """An error of a service."""

    code: str
    message: str = "no"
    status: int = 400


Answer = Mapping[str, Any] | Refuse
Play = Callable[[Params], Answer]
PLAN = Plan(
    stacks=("mats", "mats-data"),
    names=(
        PhysicalName("mats-data", "AWS::DynamoDB::Table", "mats-registry"),
        PhysicalName("mats", "AWS::OpenSearchService::Domain", "mats-public"),
        PhysicalName("mats", "AWS::SQS::Queue", "mats-changes"),
    ),
    bootstrap_version=6,
)
NO_STACK = Refuse("ValidationError", "Stack with id mats does not exist")
Answers = dict[str, Answer | Play]


def quotas(*zero: str) -> dict[str, Any]:
    listed = [
        {"QuotaName": name, "QuotaCode": f"L-{number}", "Value": 0.0 if any(z in name for z in zero) else 100.0}
        for number, name in enumerate(QUOTAS)
    ]
    return {"Quotas": listed}


def inference_profile(params: Params) -> Answer:
    id = params["inferenceProfileIdentifier"]
    geography, _, model = id.partition(".")
    if geography not in DESTINATIONS:
        return Refuse("ResourceNotFoundException", "The provided inference profile identifier is invalid.", 404)
    models = [{"modelArn": f"arn:aws:bedrock:{region}::foundation-model/{model}"} for region in DESTINATIONS[geography]]
    return {
        "inferenceProfileName": id, "inferenceProfileId": id, "inferenceProfileArn": f"arn:aws:bedrock:::{id}",
        "models": models, "status": "ACTIVE", "type": "SYSTEM_DEFINED",
    }  # fmt: skip


def model_details(params: Params) -> Answer:
    model = params["modelIdentifier"]
    details = {"modelArn": model, "modelId": model, "providerName": "Amazon", "modelName": NAMES[model]}
    return {"modelDetails": details}


def available(**but: str) -> Answer:
    states = {
        "authorizationStatus": "AUTHORIZED",
        "entitlementAvailability": "AVAILABLE",
        "regionAvailability": "AVAILABLE",
    }
    return {"modelId": RERANKER, "agreementAvailability": {"status": "AVAILABLE"}, **states, **but}


def stack(state: str) -> Answer:
    return {"Stacks": [{"StackName": "mats", "StackStatus": state, "CreationTime": NOW}]}


def resources(*ids: str) -> Play:
    summaries = [
        {
            "LogicalResourceId": "L", "PhysicalResourceId": id, "ResourceType": "T",
            "LastUpdatedTimestamp": NOW, "ResourceStatus": "CREATE_COMPLETE",
        }
        for id in ids
    ]  # fmt: skip
    return lambda params: {"StackResourceSummaries": summaries}


def concurrency(limit: int) -> Answer:
    return {"AccountLimit": {"ConcurrentExecutions": limit}}


def log_policies(count: int) -> Answer:
    return {"resourcePolicies": [{"policyName": f"policy-{number}"} for number in range(count)]}


def offered_but(*missing: str) -> Play:
    def play(params: Params) -> Answer:
        assert params["EngineVersion"].startswith("OpenSearch_")
        type = params["InstanceType"]
        return {"InstanceTypeDetails": [] if type in missing else [{"InstanceType": type}]}

    return play


def legacy(params: Params) -> Answer:
    details = model_details(params)
    lifecycle = {"status": "LEGACY", "endOfLifeTime": datetime(2027, 3, 1, tzinfo=UTC)}
    return {"modelDetails": {**details["modelDetails"], "modelLifecycle": lifecycle}}


def ready() -> Answers:
    """An account that is prepared, in which nothing is deployed."""
    return {
        "sts.GetCallerIdentity": {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/ops", "UserId": "A"},
        "ssm.GetParameter": {"Parameter": {"Name": "version", "Value": "21"}},
        "bedrock.GetInferenceProfile": inference_profile,
        "bedrock.GetFoundationModel": model_details,
        "bedrock.GetFoundationModelAvailability": available(),
        "bedrock-runtime.Converse": {
            "output": {"message": {"role": "assistant", "content": [{"text": "O"}]}},
            "stopReason": "max_tokens",
            "usage": {"inputTokens": 5, "outputTokens": 1, "totalTokens": 6},
            "metrics": {"latencyMs": 1},
        },
        "bedrock-runtime.InvokeModel": {"body": b'{"embedding": [1.0]}', "contentType": "application/json"},
        "service-quotas.ListServiceQuotas": quotas(),
        "cloudformation.DescribeStacks": NO_STACK,
        "cloudformation.ListStackResources": NO_STACK,
        "cloudcontrol.GetResource": Refuse("ResourceNotFoundException"),
        "apigateway.GetAccount": {},
        "iam.GetRole": Refuse("NoSuchEntity", status=404),
        "lambda.GetAccountSettings": concurrency(1000),
        "logs.DescribeResourcePolicies": log_policies(9),
        "opensearch.ListInstanceTypeDetails": offered_but(),
    }


class Plane:
    """An account that answers every call of a session, without HTTP, in shapes of botocore's own models."""

    def __init__(self, answers: Answers) -> None:
        self.answers, self.calls = answers, list[tuple[str, str, Params]]()
        self.session = Session("AKIDEXAMPLE", "secret", region_name="eu-west-1")
        self.session.events.register("before-parameter-build", self._note)
        self.session.events.register("before-call", self._play)

    def _note(self, params: Params, model: Any, context: Any, **_: object) -> None:
        self.calls.append((context["client_region"], f"{model.service_model.service_name}.{model.name}", params))

    def _play(self, model: Any, **_: object) -> tuple[AWSResponse, Params]:
        _, name, params = self.calls[-1]
        answer = self.answers[name]
        answer = answer(params) if callable(answer) else answer
        if isinstance(answer, Refuse):
            return AWSResponse("", answer.status, {}, None), {"Error": {"Code": answer.code, "Message": answer.message}}
        faults = ParamValidator().validate(answer, model.output_shape)
        assert not faults.has_errors(), faults.generate_report()
        return AWSResponse("", 200, {}, None), answer


Look = Callable[..., list[CheckResult]]


@pytest.fixture
def look() -> Look:
    """The findings of an account that answers otherwise than `ready` in some calls."""

    def looked(
        changed: Answers | None = None, *, region: str = "us-west-2", context: Mapping[str, str] | None = None
    ) -> list[CheckResult]:
        answers = {**ready(), **(changed or {})}
        assert set(answers) == set(ready()), "no such call"
        plane = Plane(answers)
        found = list(findings(Account(plane.session, region), parse(context or {}), lambda: PLAN))
        assert {each for each, _, _ in plane.calls} <= {region, "aws-global"}
        return found

    return looked


def problems(found: list[CheckResult], check: str) -> list[str]:
    """The problems of a check, of which there must be some, and none of others."""
    wrong = [each for each in found if each.status == "problem"]
    assert {each.check for each in wrong} == {check}, found
    return [each.message for each in wrong]


@pytest.mark.parametrize("region", ["us-east-1", "us-west-2", "ap-south-1"])
def test_a_prepared_account_has_no_problem(look: Look, region: str):
    found = look(region=region)
    assert {each.status for each in found} == {"ok"}, found
    assert [each.check for each in found] == [
        "credentials", "region", "reranker", "writer", "encoder", "bootstrap", "stacks", "names", "api-log-role",
        "concurrency", "log-policies", "instance-types",
    ]  # fmt: skip


@pytest.mark.parametrize(("region", "prefix"), [("us-east-1", ""), ("us-west-2", "us."), ("ap-south-1", "apac.")])
def test_each_model_is_called_as_the_functions_will_call_it(region: str, prefix: str):
    plane = Plane(ready())
    list(findings(Account(plane.session, region), parse({}), lambda: PLAN))
    called = [params["modelId"] for _, name, params in plane.calls if name.startswith("bedrock-runtime.")]
    assert called == [prefix + RERANKER, prefix + WRITER, TITAN]


def test_a_model_that_is_not_chosen_is_not_called(look: Look):
    context = {"rerank_model": "none", "writer_model": "none", "encoder_model": "none"}
    found = look(context=context)
    assert not {"reranker", "writer", "encoder"} & {each.check for each in found}


def test_what_is_deployed_already_is_no_problem(look: Look):
    queue = f"https://sqs.us-west-2.amazonaws.com/{ACCOUNT}/mats-changes"
    found = look({
        "cloudformation.DescribeStacks": stack("UPDATE_COMPLETE"),
        "cloudformation.ListStackResources": resources("mats-registry", "mats-public", queue, "mats-ApiRole-1"),
        "cloudcontrol.GetResource": {"TypeName": "AWS::SQS::Queue"},
        "apigateway.GetAccount": {"cloudwatchRoleArn": f"arn:aws:iam::{ACCOUNT}:role/mats-ApiRole-1"},
    })  # fmt: skip
    assert {each.status for each in found} == {"ok"}, found


@pytest.mark.parametrize("code", ["InvalidClientTokenId", "ExpiredToken"])
def test_credentials_that_are_refused_are_the_only_finding(look: Look, code: str):
    (found,) = look({"sts.GetCallerIdentity": Refuse(code, "The security token is invalid.", 403)})
    assert (found.check, found.status) == ("credentials", "problem")
    assert "renew them" in found.message


def refuse_models(code: str, message: str, *, only: str = RERANKER) -> Play:
    good = ready()["bedrock-runtime.Converse"]
    assert isinstance(good, Mapping)
    return lambda params: Refuse(code, message) if params["modelId"].endswith(only) else good


def refused(code: str, message: str, availability: Answer) -> Answers:
    """The account refuses calls of the reranker."""
    return {
        "bedrock-runtime.Converse": refuse_models(code, message),
        "bedrock.GetFoundationModelAvailability": availability,
    }


DENIED, INVALID = "AccessDeniedException", "ValidationException"
ROLE: Answers = {"apigateway.GetAccount": {"cloudwatchRoleArn": f"arn:aws:iam::{ACCOUNT}:role/theirs"}}
TAKEN: Answers = {"cloudcontrol.GetResource": {"TypeName": "AWS::SQS::Queue"}}
OLD: Answers = {"ssm.GetParameter": {"Parameter": {"Name": "version", "Value": "5"}}}
ONE_MODEL = {"writer_model": "none", "encoder_model": "none"}
FARTHER = {"inference_profile": "us:us-east-1,us-west-2", "writer_model": "none"}


@pytest.mark.parametrize(
    ("check", "changed", "options", "count", "parts"),
    [
        ("region", {}, {"region": "ca-central-1"}, 1, ["ca-central-1 cannot invoke", "inference_profile"]),
        ("concurrency", {"lambda.GetAccountSettings": concurrency(10)}, {}, 1, ["10 functions", "throttle_rate=10"]),
        (
            "concurrency",
            {"lambda.GetAccountSettings": concurrency(1000)},
            {"context": {"discovery_concurrency": "950"}},
            1,
            ["discovery_concurrency=950", "1000", "Service Quotas"],
        ),
        ("log-policies", {"logs.DescribeResourcePolicies": log_policies(10)}, {}, 1, ["10 in a region", "policy-3"]),
        (
            "instance-types",
            {"opensearch.ListInstanceTypeDetails": offered_but("m7g.medium.search")},
            {"context": {"size": "production"}},
            1,
            ["m7g.medium.search in us-west-2", "master_type"],
        ),
        ("lifecycle", {"bedrock.GetFoundationModel": legacy}, {"context": ONE_MODEL}, 1, [
            "LEGACY", "ends on 2027-03-01", "rerank_model",
        ]),
        ("bootstrap", {"ssm.GetParameter": Refuse("ParameterNotFound")}, {}, 1, ["not prepared", ": make bootstrap"]),
        ("bootstrap", OLD, {}, 1, ["has version 5, and 6 is needed: make bootstrap"]),
        *(
            ("stacks", {"cloudformation.DescribeStacks": stack(state)}, {}, 2, [state, remedy])
            for state, remedy in (
                ("ROLLBACK_COMPLETE", "delete the stack"), ("DELETE_FAILED", "delete it again"),
                ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback"), ("UPDATE_IN_PROGRESS", "wait"),
            )
        ),
        ("names", TAKEN, {}, 3, ["exists and does not belong to the stack mats", "choose another `name`"]),
        ("api-log-role", ROLE, {}, 1, ["role/theirs", ": api_log_role=keep"]),
        ("api-log-role", {}, {"context": {"api_log_role": "keep"}}, 1, [": api_log_role=set"]),
        ("opensearch-role", {}, {"context": VPC}, 1, [
            "aws iam create-service-linked-role --aws-service-name opensearchservice.amazonaws.com",
        ]),
        *(
            ("reranker", refused(code, say, about), {}, 1, [f"us.{RERANKER} refuses calls in us-west-2 ({code}: ", do])
            for code, say, about, do in (
                (DENIED, "You don't have access.", available(), "allow your own credentials"),
                (DENIED, "No.", available(authorizationStatus="NOT_AUTHORIZED"), "Model access"),
                (DENIED, "No.", available(entitlementAvailability="NOT_AVAILABLE"), "Model access"),
                (INVALID, "Invalid model.", available(regionAvailability="NOT_AVAILABLE"), "does not offer it"),
                (INVALID, "The provided model identifier is invalid.", available(), "choose another region"),
                (INVALID, "Invalid.", Refuse(DENIED, status=403), "choose another region"),
                ("ResourceNotFoundException", "Not found.", available(), "rerank_model=none"),
                ("ThrottlingException", "Too many tokens per day.", available(), "Service Quotas"),
                (INVALID, "On it with on-demand throughput isn't supported.", available(), "leave inference_pro"),
            )
        ),
        ("encoder", {"bedrock-runtime.InvokeModel": Refuse(INVALID, "Invalid.")}, {}, 1, ["encoder_model=none"]),
        ("reranker", {}, {"context": FARTHER}, 1, [
            "also routes calls to us-east-2", ": inference_profile=us:us-east-1,us-east-2,us-west-2",
        ]),
    ],
)  # fmt: skip
def test_a_problem_says_what_is_wrong_and_what_to_do(
    look: Look, check: str, changed: Answers, options: dict[str, Any], count: int, parts: list[str]
):
    found = problems(look(changed, **options), check)
    assert len(found) == count
    assert all(part in said for said in found for part in parts)


def test_a_name_that_is_taken_is_told_with_its_type(look: Look):
    assert "DynamoDB Table mats-registry exists" in problems(look(TAKEN), "names")[0]


def test_roles_that_are_there_are_no_problem(look: Look):
    assert {each.status for each in look(ROLE, context={"api_log_role": "keep"})} == {"ok"}
    arn = f"arn:aws:iam::{ACCOUNT}:role/R"
    role = {"Path": "/", "RoleName": "R", "RoleId": "A" * 16, "Arn": arn, "CreateDate": NOW}
    assert {each.status for each in look({"iam.GetRole": {"Role": role}}, context=VPC)} == {"ok"}


def test_a_profile_that_does_not_exist_is_a_problem_without_a_call(look: Look):
    found = look(region="eu-central-1")
    wrong = {each.check: each.message for each in found if each.status == "problem"}
    assert set(wrong) == {"reranker", "writer"}
    assert f"there is no inference profile eu.{RERANKER} in eu-central-1" in wrong["reranker"]
    assert "inference_profile" in wrong["reranker"]


@pytest.mark.parametrize(
    ("region", "zero", "count"),
    [
        ("us-west-2", "Cross-region model inference requests per minute for Amazon Nova Micro", 1),
        ("us-west-2", "On-demand model inference requests per minute for Amazon Nova Micro", 0),
        ("us-east-1", "On-demand model inference requests per minute for Amazon Nova Micro", 1),
        ("us-west-2", "max tokens per day for Amazon Nova Micro", 1),
        ("us-west-2", "Titan Text Embeddings V2", 1),
    ],
)
def test_a_quota_of_zero_is_a_problem_where_the_model_is_under_it(look: Look, region: str, zero: str, count: int):
    found = look({"service-quotas.ListServiceQuotas": quotas(zero)}, region=region)
    said = [each.message for each in found if each.status == "problem"]
    assert len(said) == count
    assert all(zero in each and "is 0" in each and "Service Quotas" in each for each in said)


@pytest.mark.parametrize(
    ("call", "check"),
    [
        ("service-quotas.ListServiceQuotas", "quotas"),
        ("ssm.GetParameter", "bootstrap"),
        ("cloudformation.DescribeStacks", "stacks"),
        ("cloudcontrol.GetResource", "names"),
        ("apigateway.GetAccount", "api-log-role"),
        ("bedrock.GetInferenceProfile", "reranker"),
    ],
)
def test_what_the_caller_may_not_see_is_said_and_is_no_problem(look: Look, call: str, check: str):
    found = look({call: Refuse("AccessDeniedException", "not authorized", 403)})
    unknown = [each for each in found if each.status == "unknown"]
    assert check in {each.check for each in unknown}
    assert all(each.message.startswith("not checked: ") for each in unknown)
    assert not [each for each in found if each.status == "problem"]


def test_the_plan_has_every_name_that_the_templates_give():
    made = templates()
    plan = plan_of({})
    assert set(plan.stacks) == set(made)
    assert plan.bootstrap_version >= 6
    tables = {each.name for each in plan.names if each.type == "AWS::DynamoDB::Table"}
    given = [one for one in made["mats-data"]["Resources"].values() if one["Type"] == "AWS::DynamoDB::Table"]
    assert tables == {one["Properties"]["TableName"] for one in given}
    assert {"AWS::OpenSearchService::Domain", "AWS::SQS::Queue", "AWS::Events::EventBus"} <= {
        n.type for n in plan.names
    }


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Any, str]]:
    """Runs the command over a ready account; its exit code and output."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(preflight, "plan_of", lambda values: PLAN)

    def run(*options: str, answers: Answers | None = None) -> tuple[Any, str]:
        plane = Plane({**ready(), **(answers or {})})
        plane.session._session.set_config_variable("region", None)
        if "--profile" not in options:
            monkeypatch.setattr(preflight, "Session", lambda profile_name: plane.session)
        with pytest.raises(SystemExit) as ended:
            preflight.main(options)
        return ended.value.code, "".join(capsys.readouterr())

    return run


def test_the_command_prints_findings_for_people_and_for_machines(command):
    code, for_people = command("--region", "us-west-2", "--context", "size=trial")
    assert code == 0
    assert f"ok      reranker: us.{RERANKER} answers in us-west-2\n" in for_people
    code, for_machines = command(
        "--region", "us-west-2", "--json", answers={"ssm.GetParameter": Refuse("ParameterNotFound")}
    )
    assert code == 1
    said = json.loads(for_machines)
    assert said["region"] == "us-west-2"
    assert [each["check"] for each in said["findings"] if each["status"] == "problem"] == ["bootstrap"]


def test_what_was_not_checked_is_red_in_a_pipeline_and_one_line(command):
    page = Refuse("503", f"<html>\n\n{'<p>busy</p>' * 99}\n</html>")
    code, said = command("--region", "us-west-2", answers={"ssm.GetParameter": page})
    assert code == 0
    (line,) = (line for line in said.splitlines() if "bootstrap" in line)
    assert line.startswith("unknown bootstrap: not checked")
    assert len(said.splitlines()) == 12
    assert command("--region", "us-west-2", "--strict", answers={"ssm.GetParameter": page})[0] == 1
    assert command("--region", "us-west-2", "--strict")[0] == 0


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--context", "size=huge"], "size must be small or trial or production"),
        (["--context", "size"], "KEY=VALUE"),
        (["--profile", "nobody"], "nobody"),
        ([], "--region"),
    ],
)
def test_options_that_make_no_sense_are_an_error_of_usage(command, options: list[str], part: str):
    code, said = command(*options)
    assert code == 2
    assert part in said
