"""The stand-in for Bedrock, with the real client: it refuses what the service refuses, and does what it is told."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest
from botocore import exceptions as failures
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.aws.bedrock import Answer, BedrockServer, Cut, Exchange, Refuse, tool_reply
from tests.aws.bedrock import converse_reply as reply_of

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


@pytest.mark.parametrize(
    ("told", "changes"),
    [
        ("parameter messages[0].content[0].text", {"messages": [said(5)]}),
        ("'inferenceConfig.temperature'", {"inferenceConfig": {"temperature": 2.0}}),
        ("'toolConfig.tools[0].toolSpec.name'", {"toolConfig": {"tools": [tool("x" * 65)]}}),
        ("'requestMetadata.k'", {"requestMetadata": {"k": "x" * 257}}),
        ("must start with a user message", {"messages": [said(role="assistant")]}),
        ("must alternate", {"messages": [said(), said()]}),
        ("object at system.0 is blank", {"system": [{"text": " "}]}),
        ("toolChoice.tool.name must be one of the following: judge", {"toolConfig": forced(tool={"name": "other"})}),
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
    ("told", "body"),
    [
        ("required key [inputText]", {}),
        ("request input token count: 8193", {"inputText": "漢" * 10_924}),
        ("300 is not a valid enum value", {"inputText": "x", "dimensions": 300}),
    ],
)
def test_an_invalid_text_is_rejected_with_titans_message(server, client, told, body):
    with pytest.raises(client.exceptions.ValidationException) as refused:
        client.invoke_model(modelId=TITAN, body=json.dumps(body))
    assert told in refused.value.response["Error"]["Message"]


def test_a_request_must_be_signed_for_bedrock_and_go_somewhere(server):
    missing = (403, "MissingAuthenticationTokenException")
    assert posted(server, signature="")[:2] == missing
    assert posted(server, signature=SIGNED.replace("/bedrock/", "/s3/"))[:2] == missing
    assert posted(server, "/model/x/talk")[:2] == (404, "UnknownOperationException")
    assert len(server.rejected) == 3


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ThrottlingException", 429), ("AccessDeniedException", 403), ("SomethingNewException", 400),
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


def test_a_cut_reply_ends_the_connection_in_the_middle(server, client):
    server.play = lambda _: Cut(OK, 10)
    with pytest.raises(http.client.IncompleteRead) as cut:
        posted(server, content=written())
    assert (cut.value.partial, cut.value.expected) == (OK[:10], len(OK) - 10)
    with pytest.raises(failures.ResponseStreamingError):
        embedded(client)
    reply = client.converse(**asking())
    assert reply.keys() == {"ResponseMetadata"}, "botocore takes a cut reply of Converse for an empty one"
