"""Findings in an account before a deployment, each with its remedy."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from boto3.session import Session
from botocore.awsrequest import AWSResponse
from botocore.validate import ParamValidator

from infra import preflight
from infra.context import parse
from infra.preflight import Account, CheckResult, findings

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
Answers = dict[str, Answer | Play]


def quotas(part: str = "", value: float = 0.0) -> dict[str, Any]:
    listed = [
        {"QuotaName": name, "QuotaCode": f"L-{number}", "Value": value if part and part in name else 1_200.0}
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


def concurrency(limit: int) -> Answer:
    return {"AccountLimit": {"ConcurrentExecutions": limit}}


def legacy(params: Params) -> Answer:
    details = model_details(params)
    lifecycle = {"status": "LEGACY", "endOfLifeTime": datetime(2027, 3, 1, tzinfo=UTC)}
    return {"modelDetails": {**details["modelDetails"], "modelLifecycle": lifecycle}}


def ready() -> Answers:
    """An account that is prepared, in which nothing is deployed."""
    return {
        "sts.GetCallerIdentity": {"Account": ACCOUNT, "Arn": f"arn:aws:iam::{ACCOUNT}:user/ops", "UserId": "A"},
        "bedrock.GetInferenceProfile": inference_profile,
        "bedrock.GetFoundationModel": model_details,
        "bedrock-runtime.Converse": {
            "output": {"message": {"role": "assistant", "content": [{"text": "O"}]}},
            "stopReason": "max_tokens",
            "usage": {"inputTokens": 5, "outputTokens": 1, "totalTokens": 6},
            "metrics": {"latencyMs": 1},
        },
        "bedrock-runtime.InvokeModel": {"body": b'{"embedding": [1.0]}', "contentType": "application/json"},
        "service-quotas.ListServiceQuotas": quotas(),
        "lambda.GetAccountSettings": concurrency(1000),
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
        found = list(findings(Account(plane.session, region), parse(context or {})))
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
    models = ("rerank_model", "writer_model", "encoder_model")
    of_models = [check for model in models for check in (model, f"{model} quotas")]
    assert [each.check for each in found] == ["credentials", "concurrency", *of_models]


@pytest.mark.parametrize(("region", "prefix"), [("us-east-1", ""), ("us-west-2", "us."), ("ap-south-1", "apac.")])
def test_each_model_is_called_as_the_functions_will_call_it(region: str, prefix: str):
    plane = Plane(ready())
    list(findings(Account(plane.session, region), parse({})))
    called = [params["modelId"] for _, name, params in plane.calls if name.startswith("bedrock-runtime.")]
    assert called == [prefix + RERANKER, prefix + WRITER, TITAN]


def test_a_model_that_is_not_chosen_is_not_called(look: Look):
    context = {"rerank_model": "none", "writer_model": "none", "encoder_model": "none"}
    found = look(context=context)
    assert [each.check for each in found] == ["credentials", "concurrency"]


@pytest.mark.parametrize("code", ["InvalidClientTokenId", "ExpiredToken"])
def test_credentials_that_are_refused_are_the_only_finding(look: Look, code: str):
    (found,) = look({"sts.GetCallerIdentity": Refuse(code, "The security token is invalid.", 403)})
    assert (found.check, found.status) == ("credentials", "problem")
    assert "renew them" in found.message


def refuse_models(code: str, message: str, *, only: str = RERANKER) -> Play:
    good = ready()["bedrock-runtime.Converse"]
    assert isinstance(good, Mapping)
    return lambda params: Refuse(code, message) if params["modelId"].endswith(only) else good


DENIED, INVALID = "AccessDeniedException", "ValidationException"
FARTHER = {"inference_profile": "us:us-east-1,us-west-2", "writer_model": "none"}
PRODUCTION = {"size": "production"}


@pytest.mark.parametrize(
    ("check", "changed", "options", "parts"),
    [
        ("region", {}, {"region": "ca-central-1"}, ["ca-central-1 cannot invoke", "inference_profile"]),
        ("concurrency", {"lambda.GetAccountSettings": concurrency(10)}, {}, ["10 functions", "throttle_rate=10"]),
        ("rerank_model quotas", {"bedrock.GetFoundationModel": legacy}, {
            "context": {"writer_model": "none", "encoder_model": "none"}
        }, ["LEGACY", "ends on 2027-03-01", "rerank_model"]),
        *(
            ("rerank_model", {"bedrock-runtime.Converse": refuse_models(code, say)}, {}, [
                f"us.{RERANKER} refuses calls in us-west-2 ({code}: ", do,
            ])
            for code, say, do in (
                (DENIED, "You don't have access.", "allow your own credentials"),
                (INVALID, "Invalid model.", "choose another region"),
                ("ResourceNotFoundException", "Not found.", "rerank_model=none"),
                ("ThrottlingException", "Too many tokens per day.", "Service Quotas"),
                (INVALID, "On it with on-demand throughput isn't supported.", "leave inference_pro"),
            )
        ),
        ("encoder_model", {"bedrock-runtime.InvokeModel": Refuse(INVALID, "Invalid.")}, {}, ["encoder_model=none"]),
        ("rerank_model", {}, {"context": FARTHER}, [
            "also routes calls to us-east-2", ": inference_profile=us:us-east-1,us-east-2,us-west-2",
        ]),
        ("rerank_model quotas", {"service-quotas.ListServiceQuotas": quotas("Nova Micro", 1_199.0)}, {}, [
            "is 1,199 in us-west-2", "1,200 calls a minute", "L-1", "throttle_rate=19",
        ]),
    ],
)  # fmt: skip
def test_a_problem_says_what_is_wrong_and_what_to_do(
    look: Look, check: str, changed: Answers, options: dict[str, Any], parts: list[str]
):
    (said,) = problems(look(changed, **options), check)
    assert all(part in said for part in parts), said


def test_a_profile_that_does_not_exist_is_a_problem_without_a_call(look: Look):
    wrong = {each.check: each.message for each in look(region="eu-central-1") if each.status == "problem"}
    assert set(wrong) == {"rerank_model", "writer_model"}
    assert f"there is no inference profile eu.{RERANKER} in eu-central-1" in wrong["rerank_model"]
    assert "inference_profile" in wrong["rerank_model"]


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
        ("service-quotas.ListServiceQuotas", "encoder_model quotas"),
        ("lambda.GetAccountSettings", "concurrency"),
        ("bedrock.GetInferenceProfile", "rerank_model"),
    ],
)
def test_what_the_caller_may_not_see_is_said_and_is_no_problem(look: Look, call: str, check: str):
    found = look({call: Refuse(DENIED, "not authorized", 403)})
    unknown = [each for each in found if each.status == "unknown"]
    assert check in {each.check for each in unknown}
    assert all(each.message.startswith("not checked: ") for each in unknown)
    assert not [each for each in found if each.status == "problem"]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Any, str]]:
    """Runs the command over a ready account; its exit code and output."""
    monkeypatch.setenv("AWS_REGION", "us-west-2")

    def run(*options: str, answers: Answers | None = None) -> tuple[Any, str]:
        plane = Plane({**ready(), **(answers or {})})
        plane.session._session.set_config_variable("region", None)
        monkeypatch.setattr(preflight, "Session", lambda: plane.session)
        with pytest.raises(SystemExit) as ended:
            preflight.main(options)
        return ended.value.code, "".join(capsys.readouterr())

    return run


def test_the_command_prints_a_line_for_each_finding(command):
    code, said = command("--context", "size=trial")
    assert code == 0
    assert "ok      rerank_model: as us-west-2 needs it\n" in said
    code, said = command(answers={"lambda.GetAccountSettings": concurrency(10)})
    assert (code, "problem concurrency: Lambda runs 10" in said) == (1, True)


def test_what_was_not_checked_is_red_in_a_pipeline_and_one_line(command):
    page = {"lambda.GetAccountSettings": Refuse("503", f"<html>\n\n{'<p>busy</p>' * 99}\n</html>")}
    code, said = command(answers=page)
    assert code == 0
    assert "unknown concurrency: not checked" in said
    assert len(said.splitlines()) == 8
    assert command("--strict", answers=page)[0] == 1
    assert command("--strict")[0] == 0


@pytest.mark.parametrize(
    ("options", "region", "part"),
    [(["--context", "size=huge"], "x", "size must be small or trial"), (["--context", "size"], "x", "size"),
     ([], "", "AWS_REGION")],
)  # fmt: skip
def test_options_that_make_no_sense_are_an_error_of_usage(command, monkeypatch, options, region: str, part: str):
    monkeypatch.setenv("AWS_REGION", region)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    code, said = command(*options)
    assert code == 2
    assert part in said
