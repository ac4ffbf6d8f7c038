"""The stand-in for Bedrock, with the real client: it refuses what the service refuses, and does what it is told."""

import http.client
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import boto3
import pytest
from botocore import exceptions as failures
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.aws.bedrock import Act, Answer, BedrockServer, Cut, Drip, Exchange, Raw, Refuse, Stall, tool_reply
from tests.aws.bedrock import converse_reply as reply_of
from tests.conftest import ROOT

NOVA, CLAUDE, TITAN = "us.amazon.nova-2-lite-v1:0", "anthropic.claude-haiku-4-5-v1:0", "amazon.titan-embed-text-v2:0"
OK = json.dumps(reply_of([{"text": "ok"}], stop="end_turn")).encode()
SIGNED = f"AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/bedrock/aws4_request, Signature={'0' * 64}"


def client_of(url: str, *, read_timeout: float = 5) -> Any:
    """The real client, without its own checks of what it sends."""
    return boto3.client(
        "bedrock-runtime", endpoint_url=url, region_name="us-east-1",
        aws_access_key_id="x", aws_secret_access_key="y",
        config=Config(retries={"total_max_attempts": 1}, parameter_validation=False, read_timeout=read_timeout),
    )  # fmt: skip


@pytest.fixture(scope="module")
def running() -> Iterator[BedrockServer]:
    with BedrockServer() as server:
        yield server


@pytest.fixture(scope="module")
def client(running) -> Iterator[Any]:
    with closing(client_of(running.url)) as client:
        yield client


@pytest.fixture
def server(running) -> BedrockServer:
    running.play = None
    running.exchanges.clear()
    running.rejected.clear()
    return running


def said(text: Any = "hello", role: str = "user") -> dict[str, Any]:
    return showing({"text": text}, role=role)


def showing(*blocks: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": [*blocks]}


def asking(**changes: Any) -> dict[str, Any]:
    return {"modelId": NOVA, "messages": [said()], **changes}


def tool(name: str = "judge", properties: str = "t s", **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {key: {} for key in properties.split()}, **more}
    return {"toolSpec": {"name": name, "inputSchema": {"json": schema}}}


def forced(*tools: dict[str, Any], **choice: Any) -> dict[str, Any]:
    return {"tools": [*tools] or [tool()], "toolChoice": choice or {"tool": {"name": "judge"}}}


def calling(name: str) -> dict[str, Any]:
    return showing({"toolUse": {"toolUseId": "t", "name": name, "input": {}}}, role="assistant")


def picture(content: bytes | str) -> dict[str, Any]:
    return {"image": {"format": "png", "source": {"bytes": content}}}


def written(**changes: Any) -> bytes:
    return json.dumps({"messages": [said()], **changes}).encode()


def arguments_of(reply: Any) -> Any:
    return reply["output"]["message"]["content"][0]["toolUse"]["input"]


def embedded(client: Any, text: str = "hello", **more: Any) -> Any:
    reply = client.invoke_model(modelId=TITAN, body=json.dumps({"inputText": text, **more}))
    return json.loads(reply["body"].read())


def posted(
    server: BedrockServer, path: str = f"/model/{NOVA}/converse", content: bytes = b"{}", signature: str = SIGNED
) -> tuple[int, str, bytes]:
    """Status, type of error and body, without the client's help."""
    with closing(http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]), timeout=5)) as connection:
        connection.request("POST", path, content, {"Authorization": signature} if signature else {})
        response = connection.getresponse()
        return response.status, response.headers.get("x-amzn-ErrorType", "").partition(":")[0], response.read()


def test_a_forced_reranker_scores_candidates_by_the_words_they_share(server, client):
    text = (
        'Judge. <request>"refund the card payment"</request>'
        "<candidates>\n1 agent weather\n2 tool refund | does card payment back to the payer\n</candidates>"
    )
    reply = client.converse(**asking(messages=[said(text)], toolConfig=forced()))
    assert arguments_of(reply) == {"t": "tool", "s": [0, 100]}
    assert reply["stopReason"] == "tool_use"
    assert reply["usage"]["inputTokens"] == len(json.dumps(server.exchanges[0].body)) // 4


def test_a_forced_writer_uses_the_words_of_the_registration(server, client):
    registration = '{"name": "maps_geocode", "description": "Finds places. Fast."}'
    described = {"toolConfig": forced(tool(properties="summary"), any={})}
    reply = client.converse(**asking(messages=[said(f"<registration>{registration}</registration>")], **described))
    fields = arguments_of(reply)
    assert fields["summary"] == "Finds places."
    assert fields["keywords"] == ["maps", "geocode", "finds", "places", "fast"]
    assert (len(fields["positive_examples"]), len(fields["negative_examples"])) == (2, 1)
    reply = client.converse(**asking(messages=[said('<registration>{"name": "x"}</registration>')], **described))
    assert arguments_of(reply)["summary"] == arguments_of(reply)["action"] == ""


def test_without_a_forced_tool_the_model_answers_ok(server, client):
    reply = client.converse(**asking(toolConfig=forced(auto={})))
    assert (reply["output"]["message"]["content"], reply["stopReason"]) == ([{"text": "ok"}], "end_turn")


def test_texts_with_shared_words_have_close_unit_embeddings(server, client):
    def cosine(one: str, other: str) -> float:
        pairs = zip(embedded(client, one)["embedding"], embedded(client, other)["embedding"], strict=True)
        return sum(a * b for a, b in pairs)

    assert cosine("refund a card", "Refund A Card!") == pytest.approx(1)
    assert cosine("refund a card", "refund a debit card") > 0.8
    assert cosine("refund a card", "weather in Rome") < 0.2
    assert cosine("?!", "?!") == pytest.approx(1)


def test_an_embedding_has_the_requested_size_and_forms(server, client):
    answer = embedded(client, "one one two 四", dimensions=256, normalize=False, embeddingTypes=["float", "binary"])
    assert len(answer["embedding"]) == 256
    assert math.hypot(*answer["embedding"]) == pytest.approx(math.sqrt(6))
    assert sum(answer["embeddingsByType"]["binary"]) == 3
    assert answer["embeddingsByType"]["float"] == answer["embedding"]
    assert answer["inputTextTokenCount"] == 3
    assert len(embedded(client, "x")["embeddingsByType"]["float"]) == 1024


def test_exchanges_are_recorded_in_order_with_the_decoded_model_id(server, client):
    arn = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-lite-v1:0"
    client.converse(**asking(modelId=arn))
    embedded(client)
    first, second = server.exchanges
    assert (first.operation, first.model, first.body) == ("Converse", arn, {"messages": [said()]})
    assert (second.operation, second.model, second.body) == ("InvokeModel", TITAN, {"inputText": "hello"})
    assert second.number == first.number + 1


@pytest.mark.parametrize(
    ("told", "changes"),
    [
        ("parameter in messages[0]: \"role\"", {"messages": [{"content": []}]}),
        ("parameter messages[0].content[0].text", {"messages": [said(5)]}),
        ("structure messages[0].content[0]", {"messages": [showing({"text": "x", "cachePoint": {"type": "default"}})]}),
        ("inferenceConfig.maxTokens, value: 0", {"inferenceConfig": {"maxTokens": 0}}),
        ("'inferenceConfig.maxTokens'", {"inferenceConfig": {"maxTokens": True}}),
        ("'inferenceConfig.temperature'", {"inferenceConfig": {"temperature": 2.0}}),
        ("'inferenceConfig.stopSequences'", {"inferenceConfig": {"stopSequences": ["x"] * 2501}}),
        ("'messages[0].role'", {"messages": [said(role="robot")]}),
        ("'toolConfig.tools[0].toolSpec.name'", {"toolConfig": {"tools": [tool("no spaces")]}}),
        ("'toolConfig.tools[0].toolSpec.name'", {"toolConfig": {"tools": [tool("x" * 65)]}}),
        ("'requestMetadata'", {"requestMetadata": {str(n): "" for n in range(17)}}),
        ("'requestMetadata'", {"requestMetadata": {}}),
        ("'requestMetadata (key: {})'", {"requestMetadata": {"{}": ""}}),
        ("'requestMetadata.k'", {"requestMetadata": {"k": "x" * 257}}),
        ("'messages[0].content[0].image.source.bytes'", {"messages": [showing(picture(b""))]}),
        ("'serviceTier.type'", {"serviceTier": {"type": "free"}}),
        ("'modelId'", {"modelId": "no such/model"}),
        ("must start with a user message", {"messages": []}),
        ("must start with a user message", {"messages": [said(role="assistant")]}),
        ("must alternate", {"messages": [said(), said()]}),
        ("must alternate", {"messages": [said(), said(role="system")]}),
        ("object at messages.0 is empty", {"messages": [showing()]}),
        ("object at messages.1.content.0 is blank", {"messages": [said(), said(" \n", "assistant")]}),
        ("object at system.0 is blank", {"system": [{"text": " "}]}),
        ("toolConfig field must be defined", {"messages": [said(), calling("judge")]}),
        ("toolChoice.tool.name must be one of the following: judge", {"toolConfig": forced(tool={"name": "other"})}),
        ("toolConfig.tools must be unique", {"toolConfig": forced(tool(), tool())}),
        ("toolSpec.inputSchema.json.type must be", {"toolConfig": forced(tool(type="array"))}),
        ("Remove additionalProperties", {"toolConfig": forced(tool(additionalProperties=False))}),
        ("This model doesn't support the toolConfig.toolChoice.tool field. Remove toolConfig.toolChoice.tool and try",
         {"modelId": "mistral.x-v1:0", "toolConfig": forced()}),
        ("support the toolConfig.toolChoice.any field", {"modelId": "meta.llama-v1:0", "toolConfig": forced(any={})}),
    ],
)  # fmt: skip
def test_an_invalid_conversation_is_rejected_with_its_place(server, client, told, changes):
    with pytest.raises(client.exceptions.ValidationException) as refused:
        client.converse(**asking(**changes))
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert told in refused.value.response["Error"]["Message"]
    assert server.rejected == [refused.value.response["Error"]["Message"]]
    assert server.exchanges == []


@pytest.mark.parametrize(
    "changes",
    [
        {"modelId": CLAUDE, "toolConfig": forced(tool(additionalProperties=False))},
        {"modelId": "mistral.x-v1:0", "toolConfig": forced(any={})},
        {"modelId": "meta.llama-v1:0", "toolConfig": {"tools": [tool(properties="")]}},
        {"messages": [said(), said(role="assistant"), said("again")], "system": [{"text": "s"}]},
        {"inferenceConfig": {"temperature": 1, "topP": 0.0, "maxTokens": 1, "stopSequences": []}},
        {"additionalModelRequestFields": {"inferenceConfig": {"topK": 1}, "any": [None, True, "x" * 9999]}},
        {"requestMetadata": {"team": "search"}, "serviceTier": {"type": "flex"}},
        {"messages": [showing(picture(b"x"))]},
    ],
)
def test_valid_requests_are_accepted(server, client, changes):
    server.play = lambda _: Answer(reply_of([{"text": "fine"}], stop="end_turn"))
    assert client.converse(**asking(**changes))["output"]["message"]["content"] == [{"text": "fine"}]


@pytest.mark.parametrize(
    ("told", "body"),
    [
        ("extraneous key [input]", {"input": "x", "inputText": "x"}),
        ("required key [inputText]", {}),
        ("#/inputText: expected type: String", {"inputText": ["x"]}),
        ("expected minLength: 1, actual: 0", {"inputText": ""}),
        ("expected maxLength: 50000, actual: 50001", {"inputText": "x" * 50_001}),
        ("request input token count: 8193", {"inputText": "漢" * 10_924}),
        ("300 is not a valid enum value", {"inputText": "x", "dimensions": 300}),
        ("#/normalize", {"inputText": "x", "normalize": "yes"}),
        ("#/embeddingTypes", {"inputText": "x", "embeddingTypes": ["int8"]}),
        ("Malformed input request, please", ["x"]),
    ],
)
def test_an_invalid_text_is_rejected_with_titans_message(server, client, told, body):
    with pytest.raises(client.exceptions.ValidationException) as refused:
        client.invoke_model(modelId=TITAN, body=json.dumps(body))
    assert told in refused.value.response["Error"]["Message"]


def test_a_text_beyond_titans_limit_is_rejected(server, client):
    assert embedded(client, "漢" * 10_923)["inputTextTokenCount"] == 8192
    assert len(embedded(client, "a b c d " * 4_000, dimensions=512)["embedding"]) == 512


def test_other_models_and_operations_are_not_found(server, client):
    with pytest.raises(client.exceptions.ValidationException, match="model identifier is invalid"):
        client.invoke_model(modelId="cohere.embed-v4:0", body="{}")
    with pytest.raises(client.exceptions.ResourceNotFoundException, match="ConverseStream"):
        client.converse_stream(**asking())
    with pytest.raises(client.exceptions.ResourceNotFoundException, match="ListAsyncInvokes"):
        client.list_async_invokes()


def test_headers_count_as_members_of_a_request(server, client):
    with pytest.raises(client.exceptions.ValidationException, match="'trace'"):
        client.invoke_model(modelId=TITAN, body='{"inputText": "x"}', trace="LOUD")


def test_a_request_must_be_signed_for_bedrock_and_go_somewhere(server):
    missing = (403, "MissingAuthenticationTokenException")
    assert posted(server, signature="")[:2] == missing
    assert posted(server, signature=SIGNED.replace("/bedrock/", "/s3/"))[:2] == missing
    assert posted(server, "/model/x/talk")[:2] == (404, "UnknownOperationException")
    assert len(server.rejected) == 3


@pytest.mark.parametrize(
    ("told", "content"),
    [
        ("not a JSON object", b""),
        ("not a JSON object", b"[]"),
        ("not a JSON object", b"\xff"),
        ("not a JSON object", written()[:-1]),
        ("not a JSON object", written(additionalModelRequestFields={"x": math.nan})),
        ('"modelId" does not belong', written(modelId=NOVA)),
        ('in input: "stream"', written(stream=True)),
        ('in inferenceConfig: "topK"', written(inferenceConfig={"topK": 5})),
        ('in toolConfig.tools[0].toolSpec: "more"', written(toolConfig={"tools": [{"toolSpec": {"more": 1}}]})),
        ("for parameter messages", written(messages="hello")),
        ("for parameter system", written(system=None)),
        ("bytes' failed to satisfy constraint: Member must be base64", written(messages=[showing(picture("?"))])),
    ],
)  # fmt: skip
def test_an_invalid_request_body_is_rejected(server, told, content):
    status, kind, body = posted(server, content=content)
    assert (status, kind) == (400, "ValidationException")
    assert told in json.loads(body)["message"]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ThrottlingException", 429), ("ServiceUnavailableException", 503), ("InternalServerException", 500),
        ("ModelTimeoutException", 408), ("ModelErrorException", 424), ("AccessDeniedException", 403),
        ("ExpiredTokenException", 403), ("UnrecognizedClientException", 403), ("SomethingNewException", 400),
    ],
)  # fmt: skip
def test_a_refusal_has_the_status_of_the_service(server, client, code, status):
    server.play = lambda _: Refuse(code, "no")
    with pytest.raises(ClientError) as refused:
        client.converse(**asking())
    assert refused.value.response["Error"] == {"Message": "no", "Code": code}
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == status


def test_a_play_sees_each_request_and_may_leave_it_to_the_model(server, client):
    def play(exchange: Exchange) -> Answer | None:
        return Answer(tool_reply(exchange, ["mine"], stop="max_tokens")) if "toolConfig" in exchange.body else None

    server.play = play
    reply = client.converse(**asking(toolConfig=forced()))
    assert (arguments_of(reply), reply["stopReason"]) == (["mine"], "max_tokens")
    assert client.converse(**asking())["output"]["message"]["content"] == [{"text": "ok"}]


def test_loose_answers_and_raw_bytes_are_sent_unchanged(server, client):
    server.play = lambda _: Answer([1], loose=True)
    assert posted(server, content=written())[2] == b"[1]"
    server.play = lambda _: Raw(b"<html>", 502, headers={"Content-Type": "text/html"})
    with pytest.raises(ClientError, match="502") as failed:
        client.converse(**asking())
    assert failed.value.response["ResponseMetadata"]["HTTPHeaders"]["content-type"] == "text/html"


def test_a_cut_reply_ends_the_connection_in_the_middle(server, client):
    server.play = lambda _: Cut(OK, 10)
    with pytest.raises(http.client.IncompleteRead) as cut:
        posted(server, content=written())
    assert (cut.value.partial, cut.value.expected) == (OK[:10], len(OK) - 10)
    with pytest.raises(failures.ResponseStreamingError):
        embedded(client)
    reply = client.converse(**asking())
    assert reply.keys() == {"ResponseMetadata"}, "botocore takes a cut reply of Converse for an empty one"


def test_a_connection_reset_is_sent(server, client):
    server.play = lambda _: Cut(OK, 10, "reset")
    with pytest.raises(ConnectionResetError):
        posted(server, content=written())
    with pytest.raises(failures.ConnectionClosedError):
        client.converse(**asking())
    server.play = None
    assert client.converse(**asking())["stopReason"] == "end_turn"


@pytest.mark.parametrize("stall", [Stall(60), Stall(60, OK[:10]), Stall(60, before_headers=True)])
def test_a_stall_outlasts_the_client(server, stall):
    server.play = lambda _: stall
    with closing(client_of(server.url, read_timeout=0.05)) as hasty, pytest.raises(failures.ReadTimeoutError):
        hasty.converse(**asking())


def test_a_stall_ends_with_the_connection(server, client):
    server.play = lambda _: Stall(0.02, before_headers=True)
    with pytest.raises(failures.ConnectionClosedError):
        client.converse(**asking())


def test_a_slow_reply_arrives_whole_with_a_short_read_timeout(server):
    patience_s = 1
    server.play = lambda _: Drip(OK, 1.5 * patience_s / len(OK))
    started = time.monotonic()
    with closing(client_of(server.url, read_timeout=patience_s)) as hasty:
        assert hasty.converse(**asking())["stopReason"] == "end_turn"
    assert time.monotonic() - started > patience_s


def test_delays_of_many_requests_pass_at_the_same_time():
    with BedrockServer(delay_s=0.2, record=False) as server, ThreadPoolExecutor(60) as pool:
        started = time.monotonic()
        replies = [future.result() for future in [pool.submit(posted, server, content=written()) for _ in range(60)]]
        assert {status for status, _, _ in replies} == {200}
        assert 0.2 <= time.monotonic() - started < 2
        assert server.exchanges == []


@pytest.mark.parametrize(
    "play", [lambda _: Answer({}), lambda _: Answer(reply_of([], stop="bored")), lambda _: 1 / 0, lambda _: {}]
)
def test_an_error_in_a_play_is_not_taken_for_an_outage(play):
    with pytest.raises((AssertionError, ZeroDivisionError)), BedrockServer(play) as server:
        assert posted(server, content=written())[:2] == (500, "InternalServerException")


def test_leaving_ends_stalls_at_once_and_leaves_no_thread():
    arrived = threading.Barrier(5)

    def play(exchange: Exchange) -> Act:
        arrived.wait(5)
        return Stall(60)

    before, started = set(threading.enumerate()), time.monotonic()
    with ThreadPoolExecutor(4) as pool, BedrockServer(play) as server:
        calls = [pool.submit(posted, server, content=written()) for _ in range(4)]
        arrived.wait(5)
    assert all(isinstance(call.exception(), http.client.HTTPException | ConnectionError) for call in calls)
    assert time.monotonic() - started < 2
    assert set(threading.enumerate()) <= before


def test_a_server_restarts_on_the_same_port():
    server = BedrockServer()
    with server:
        client = client_of(server.url)
        client.converse(**asking())
    with closing(client):
        with pytest.raises(failures.EndpointConnectionError):
            client.converse(**asking())
        with server:
            assert client.converse(**asking())["stopReason"] == "end_turn"


def test_the_client_environment_names_this_server(server, monkeypatch):
    for name, value in server.client_environment().items():
        monkeypatch.setenv(name, value)
    with closing(boto3.session.Session().client("bedrock-runtime")) as client:
        client.converse(**asking())
    assert len(server.exchanges) == 1


@pytest.mark.parametrize(("trouble", "error"), [("--dead", ClientError), ("--stall", failures.ReadTimeoutError)])
def test_the_command_prints_its_url_and_embeds_with_a_failing_llm(trouble, error):
    command = [sys.executable, "-m", "tests.aws.bedrock", "--port", "0", trouble]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        try:
            url = process.stdout.readline().decode().strip()
            with closing(client_of(url)) as client, closing(client_of(url, read_timeout=0.1)) as hasty:
                assert embedded(client)["inputTextTokenCount"] == 1
                with pytest.raises(error):
                    (hasty if trouble == "--stall" else client).converse(**asking())
        finally:
            process.kill()
