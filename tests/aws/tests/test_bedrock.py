"""The stand-in for Bedrock, with the real client: it refuses what the service refuses."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest
from botocore.config import Config

from tests.aws.bedrock import BedrockServer, Cut, converse_reply

NOVA, TITAN = "us.amazon.nova-2-lite-v1:0", "amazon.titan-embed-text-v2:0"
OK = json.dumps(converse_reply([{"text": "ok"}], stop="end_turn")).encode()
SIGNED = f"AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/bedrock/aws4_request, Signature={'0' * 64}"


def client_of(url: str) -> Any:
    """The real client, without its own checks of what it sends."""
    return boto3.client(
        "bedrock-runtime", endpoint_url=url, region_name="us-east-1",
        aws_access_key_id="x", aws_secret_access_key="y",
        config=Config(retries={"total_max_attempts": 1}, parameter_validation=False),
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
    return {"role": role, "content": [{"text": text}]}


def asking(**changes: Any) -> dict[str, Any]:
    return {"modelId": NOVA, "messages": [said()], **changes}


def tool(name: str = "judge") -> dict[str, Any]:
    schema = {"type": "object", "properties": {"t": {}, "s": {}}}
    return {"toolSpec": {"name": name, "inputSchema": {"json": schema}}}


def forced(*tools: dict[str, Any], **choice: Any) -> dict[str, Any]:
    return {"tools": [*tools] or [tool()], "toolChoice": choice or {"tool": {"name": "judge"}}}


def posted(
    server: BedrockServer, path: str = f"/model/{NOVA}/converse", content: bytes = b"{}", signature: str = SIGNED
) -> tuple[int, str, bytes]:
    """Status, type of error and body, without the client's help."""
    with closing(http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]), timeout=5)) as connection:
        connection.request("POST", path, content, {"Authorization": signature} if signature else {})
        response = connection.getresponse()
        return response.status, response.headers.get("x-amzn-ErrorType", "").partition(":")[0], response.read()


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


def test_a_cut_reply_ends_the_connection_in_the_middle(server, client):
    server.play = lambda _: Cut(OK, 10)
    with pytest.raises(http.client.IncompleteRead) as cut:
        posted(server, content=json.dumps({"messages": [said()]}).encode())
    assert (cut.value.partial, cut.value.expected) == (OK[:10], len(OK) - 10)
    reply = client.converse(**asking())
    assert reply.keys() == {"ResponseMetadata"}, "botocore takes a cut reply of Converse for an empty one"
