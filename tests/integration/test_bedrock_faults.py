"""Faults between the adapters and the models: errors of the service, the network, credentials and regions."""

import json
import math

import pytest

from mats.bootstrap import models as bootstrap
from mats.domain.errors import DependencyFailed, ModelRefused, NotPermitted, ReplyUnusable
from mats.settings import Settings
from tests.aws.bedrock import Act, BedrockServer, Cut, Exchange, Play, Raw, Refuse, Stall, tool_reply
from tests.bedrock.conftest import aws_settings, models_of
from tests.builders import a_registration
from tests.integration.bedrock_workbench import (
    HASTE_S,
    LITE,
    MICRO,
    REFUND,
    SHOWN,
    TITAN,
    Bench,
    assert_nothing_comes_of_it,
)

JUDGED = json.dumps(tool_reply("judge", {"t": "tool", "s": [1, 2, 3]})).encode()


@pytest.fixture(scope="module")
def hasty(running: BedrockServer) -> Bench:
    return Bench(running, patience_s=HASTE_S)


def always(act: Act) -> Play:
    return lambda exchange: act


INVALID = "ValidationException"
ERRORS = [
    ("ThrottlingException", "The service says why.", DependencyFailed),
    ("SomethingNewException", "", DependencyFailed),
    ("ExpiredTokenException", "The service says why.", NotPermitted),
    ("AccessDeniedException", "no identity-based policy allows it", ModelRefused),
    ("ResourceNotFoundException", "The service says why.", ModelRefused),
    (
        INVALID,
        "Invocation of model ID m with on-demand throughput isn’t supported. Retry your request with",
        ModelRefused,
    ),
    (INVALID, "The provided model identifier is invalid.", ModelRefused),
    (INVALID, "Operation not allowed", ModelRefused),
    (INVALID, "This action doesn't support the model that you provided. Try again with a supported text", ModelRefused),
    (INVALID, "This model doesn't support the toolConfig.toolChoice.tool field. Remove toolConfig.", ModelRefused),
    (INVALID, "The maximum tokens you requested exceeds the model limit of 512. Try again with a", ModelRefused),
    (INVALID, "Malformed input request: #: required key [texts] not found#: extraneous key", ModelRefused),
    (INVALID, "Malformed input request: #/inputText: expected maxLength: 50000, actual: 60000", DependencyFailed),
    (INVALID, "Input is too long for requested model.", DependencyFailed),
    (INVALID, "", DependencyFailed),
]
"""Refused is what every request to the model would get; test_store_faults has the codes that all services share."""


@pytest.mark.parametrize(("code", "text", "expected"), ERRORS)
def test_every_error_is_one_attempt_and_one_error_with_the_model(server, bench, code, text, expected):
    server.play = always(Refuse(code, text, status=403 if expected is NotPermitted else None))
    for failed, model in ((bench.rerank(), MICRO), (bench.describe(), LITE), (bench.encode(), TITAN)):
        assert type(failed) is expected
        assert all(part in str(failed) for part in (model, code, text))
        assert expected is not ModelRefused or (failed.model, failed.cause) == (model, f"{code}: {text}")
    assert len(server.exchanges) == 3
    assert_nothing_comes_of_it(bench, (expected,))


def test_a_reply_that_the_service_cannot_read_is_repaired_once_and_then_given_up(server, bench):
    text = "Model produced invalid sequence as part of ToolUse"
    server.play = always(Refuse("ModelErrorException", text))
    written = bench.describe()
    assert type(written) is ReplyUnusable
    first, second = (str(exchange.body) for exchange in server.exchanges)
    assert text in second
    assert text not in first
    assert text in bench.rerank().void
    assert type(bench.encode()) is DependencyFailed


def test_one_throttled_document_among_refused_ones_keeps_the_batch_waiting(server, bench):
    def play(exchange: Exchange) -> Act:
        return Refuse("ThrottlingException" if exchange.body["inputText"] == "b" else "AccessDeniedException")

    server.play = play
    with pytest.raises(DependencyFailed, match="ThrottlingException"):
        bench.encoder.encode_documents(["a", "b", "c"])


NO_REPLIES: dict[str, Act] = {
    "silent before headers": Stall(math.inf, before_headers=True),
    "silent amid the reply": Stall(math.inf, JUDGED[:40]),
    "silent amid an error": Raw(b'{"mess', 503, headers={"Content-Length": "100"}),
    "closed amid the reply": Cut(JUDGED, 40),
    "reset": Cut(JUDGED, len(JUDGED) // 2, "reset"),
    "proxy's page": Raw(b"<html>Bad gateway</html>", 502),
    "error of another shape": Raw(b'[{"message": 5}]', 400),
    "error that nests": Raw(b'{"message":' * 5_000 + b"1" + b"}" * 5_000, 500),
    "error in the body": Raw(b'{"__type": "ThrottlingException", "message": "slow down"}', 429),
    "nothing under 204": Raw(b"", 204),
    "page under 200": Raw(b"<html>Sign in</html>"),
}


@pytest.mark.parametrize("what", NO_REPLIES)
def test_any_network_failure_drops_only_the_signal_of_the_reranker(server, bench, hasty, what):
    server.play = always(NO_REPLIES[what])
    assert_nothing_comes_of_it(hasty if "silent" in what else bench)


def test_a_service_that_is_gone_is_an_error_and_used_again_when_it_is_back():
    with BedrockServer() as first:
        bench = Bench(first)
        assert len(bench.reranker.rerank("x", SHOWN).scores) == 3
    assert_nothing_comes_of_it(bench)
    assert MICRO in str(bench.rerank())
    with first:
        assert len(bench.reranker.rerank("x", SHOWN).scores) == 3


def test_offline_retries_one_throttled_call_and_leaves_bursts_to_redelivery(server, monkeypatch):
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda seconds: None)
    with aws_settings(server.client_environment()):
        patient = models_of(Settings(bedrock=True))
    throttled = Refuse("ThrottlingException")
    for call in (lambda: patient.writer.describe(REFUND), lambda: patient.encoder.encode_documents(["refund"])):
        server.exchanges.clear()
        server.play = lambda exchange: throttled if len(server.exchanges) == 1 else None
        assert call()
        assert len(server.exchanges) == 2
    server.play = always(throttled)
    server.exchanges.clear()
    with pytest.raises(DependencyFailed, match="ThrottlingException"):
        patient.writer.describe(REFUND)
    assert len(server.exchanges) == 2


def test_online_never_retries_throttled_calls(server):
    with aws_settings({**server.client_environment(), "AWS_MAX_ATTEMPTS": "9", "AWS_RETRY_MODE": "adaptive"}):
        models = models_of(Settings(bedrock=True))
    server.play = always(Refuse("ThrottlingException"))
    for n in range(1, 4):
        with pytest.raises(DependencyFailed, match="ThrottlingException"):
            models.reranker.rerank("x", SHOWN)
        with pytest.raises(DependencyFailed, match="ThrottlingException"):
            models.encoder.encode_query("x")
        assert len(server.exchanges) == 2 * n


def endpoint_of(server: BedrockServer) -> dict[str, str]:
    return {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.url}


def test_without_credentials_answers_come_and_the_error_says_what_to_do(server):
    with aws_settings({**endpoint_of(server), "AWS_REGION": "us-east-1"}):
        models = models_of(Settings(bedrock=True, region="us-east-1"))
        for call in (
            lambda: models.reranker.rerank("x", SHOWN),
            lambda: models.writer.describe(a_registration()),
            lambda: models.encoder.encode_query("x"),
            lambda: models.encoder.encode_documents(["x"]),
        ):
            with pytest.raises(NotPermitted, match="credentials"):
                call()
    assert server.exchanges == []


def test_expired_credentials_are_not_permitted(server, tmp_path):
    config = tmp_path / "config"
    config.write_text(
        "[profile work]\nregion = us-east-1\nsso_session = s\nsso_account_id = 123456789012\nsso_role_name = r\n"
        "[sso-session s]\nsso_region = us-east-1\nsso_start_url = https://example.invalid/start\n"
    )
    with aws_settings({**endpoint_of(server), "AWS_CONFIG_FILE": str(config), "AWS_PROFILE": "work"}):
        models = models_of(Settings(bedrock=True))
        with pytest.raises(NotPermitted, match="aws sso login"):
            models.reranker.rerank("x", SHOWN)


UNUSABLE = [
    ({"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}, "AWS_REGION"),
    *(
        ({"AWS_REGION": "us-east-1", **broken}, "Bedrock cannot be called")
        for broken in ({"AWS_PROFILE": "nobody"}, {"AWS_ACCESS_KEY_ID": "x"}, {"AWS_REGION": "us east"})
    ),
]


@pytest.mark.parametrize(("variables", "said"), UNUSABLE)
def test_an_unusable_aws_configuration_is_one_readable_error(server, variables, said):
    with aws_settings({**endpoint_of(server), **variables}), pytest.raises(NotPermitted, match=said):
        models_of(Settings(bedrock=True)).reranker.rerank("x", SHOWN)


def test_the_region_of_the_settings_wins_over_that_of_the_environment(server):
    with aws_settings(server.client_environment()):
        settings = Settings(bedrock=True, region="eu-central-1")
        models, bedrock = models_of(settings), bootstrap.bedrock(settings)
        assert bedrock is not None
        assert bedrock.online.region == "eu-central-1"
    server.play = always(Refuse("AccessDeniedException"))
    with pytest.raises(NotPermitted, match="eu-central-1"):
        models.reranker.rerank("x", SHOWN)
