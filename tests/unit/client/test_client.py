"""The client against a scripted server."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from mats.client import (
    Bearer,
    Busy,
    Client,
    NotAllowed,
    NotFound,
    NotUnderstood,
    Refused,
    Retries,
    SigV4,
    Unreachable,
    WrongRequest,
)
from mats.edge.schema import Answer
from tests.servers.raw_http import answering, drip, response
from tests.servers.site import Asked, site
from tests.unit.edge.test_openapi import FULL

ANSWER = json.loads(Answer.of(FULL).model_dump_json())
HEALTH = {"status": "ok", "index": "i", "encoder": None, "reranker": None}


class Server(NamedTuple):
    """A site that answers with the steps of a script, the last one repeated, and the requests that it had."""

    url: str
    requests: list[Asked]


@contextmanager
def serving(*script: Any) -> Iterator[Server]:
    requests: list[Asked] = []

    def answer(asked: Asked) -> Any:
        requests.append(asked)
        status, content, headers = (*script[min(len(requests), len(script)) - 1], {})[:3]
        return status, headers, content if isinstance(content, bytes) else json.dumps(content).encode()

    with site(answer) as url:
        yield Server(url, requests)


def retries(waits: list[float] | None = None, **more: Any) -> Retries:
    waits = [] if waits is None else waits
    return Retries(sleep=waits.append, random=lambda: 1.0, **more)


def problem(status: int, **more: Any) -> dict[str, Any]:
    return {"type": "about:blank", "title": "No", "status": status, "detail": "because", "errors": [], **more}


def drop(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


CUT_OFF = response("200 OK\r\nContent-Length: 1000", b'{"query')
FAULTS: dict[str, Callable[[socket.socket], None]] = {
    "hang": lambda connection: drop(connection) if connection.recv(1) else None,  # until the client leaves
    "drop": drop,
    "drip": lambda connection: drip(connection, b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"),
    "cut_off": CUT_OFF,
}


def test_request_follows_the_contract():
    with serving((200, ANSWER)) as server, Client(server.url) as mats:
        answer = mats.discover(
            "refund", kinds="tool", namespaces={"com.acme"}, tags=("a",), limit=3, min_relevance="weak"
        )
        mats.discover(["refund", "mail"], parts=True)
    assert answer == Answer.of(FULL)
    request, steps = server.requests
    assert json.loads(steps.body).items() >= {"queries": ["refund", "mail"], "parts": True}.items()
    assert request.target == "/discover"
    assert json.loads(request.body) == {
        "query": "refund", "kinds": ["tool"], "namespaces": ["com.acme"], "tags": ["a"], "limit": 3,
        "min_relevance": "weak", "explain": False,
    }  # fmt: skip
    assert "Authorization" not in request.headers


@pytest.mark.parametrize(("id", "path"), [
    ("com.acme/refund", "/capabilities/com.acme/refund"),
    ("com.acme/docs/read file?#%", "/capabilities/com.acme/docs/read%20file%3F%23%25"),
    ("com.acme/調べる", "/capabilities/com.acme/%E8%AA%BF%E3%81%B9%E3%82%8B"),
    ("com.acme/\ud800", "/capabilities/com.acme/%3F"), ("com.acme/a/../b", "/capabilities/com.acme%2Fa%2F..%2Fb"),
    ("com.acme/../../healthz", "/capabilities/com.acme%2F..%2F..%2Fhealthz"),
    ("com.acme/a//b", "/capabilities/com.acme%2Fa%2F%2Fb"),
])  # fmt: skip
def test_id_reaches_the_server_unchanged(id, path):
    instructions = {"id": "com.acme/x", "instructions": "Go.", "files": ["SKILL.md"], "suspicious": []}
    with serving((404, problem(404)), (200, instructions)) as server, Client(server.url) as mats:
        with pytest.raises(NotFound):
            mats.capability(id)
        assert mats.instructions(id).files == ["SKILL.md"]
    assert [asked.target for asked in server.requests] == [path, f"{path}/instructions"]
    assert server.requests[1].headers["Accept"] == "application/json"


@pytest.mark.parametrize(("status", "error"), [
    (400, WrongRequest), (401, NotAllowed), (403, NotAllowed), (404, NotFound), (413, WrongRequest),
    (422, WrongRequest), (500, Refused), (302, Refused), (418, Refused),
])  # fmt: skip
def test_error_carries_its_problem(status, error):
    body = problem(status, errors=[{"field": "query", "message": "is required"}], instance="/1")
    with serving((status, body)) as server, Client(server.url, retries=retries()) as mats:
        with pytest.raises(error) as caught:
            mats.discover("x")
        assert type(caught.value) is error
        assert caught.value.status == status
        assert caught.value.problem.errors[0].field == "query"
        assert str(caught.value) == f"{status} No: because; query: is required"
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_busy_api_is_retried_with_backoff_and_a_fresh_token(status):
    waits: list[float] = []
    tokens = iter(["first", "second", "third"])
    with serving((status, problem(status)), (status, b"<html>"), (200, HEALTH)) as server:
        mats = Client(server.url, auth=Bearer(lambda: next(tokens)), retries=retries(waits))
        assert mats.health().status == "ok"
    assert waits == [0.25, 0.5]
    assert [asked.headers["Authorization"] for asked in server.requests] == [
        "Bearer first", "Bearer second", "Bearer third",
    ]  # fmt: skip


@pytest.mark.parametrize(("said", "after", "waited"), [
    ("2", 2, [2.0, 2.0, 2.0]), ("60", 60, []), ("9" * 5_000, None, [0.25, 0.5, 1.0]), ("soon", None, [0.25, 0.5, 1.0]),
    ("Fri, 31 Dec 1999 23:59:59 GMT", 0, [0.25, 0.5, 1.0]),
])  # fmt: skip
def test_retries_end_and_respect_retry_after(said, after, waited):
    waits: list[float] = []
    with serving((503, problem(503), {"Retry-After": said})) as server, pytest.raises(Busy) as caught:
        Client(server.url, retries=retries(waits, attempts=4)).health()
    assert (waits, caught.value.retry_after_s, len(server.requests)) == (waited, after, len(waited) + 1)


def test_backoff_has_jitter_and_a_maximum():
    drawn = [Retries(random=lambda r=r: r).pause_s(1, None) for r in (0.0, 0.5, 1.0)]
    assert drawn == [0.125, 0.1875, 0.25]
    assert Retries(random=lambda: 1.0, longest_s=1, attempts=99).pause_s(50, None) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_timeouts_and_dropped_connections_are_retried_then_raised(fault: str):
    plays = []

    def play(connection: socket.socket) -> None:
        plays.append(1)
        healthy = response(f"200 OK\r\nContent-Length: {len(body)}", body)
        (healthy if lasting < len(plays) else FAULTS[fault])(connection)

    body, lasting = json.dumps(HEALTH).encode(), 1
    with answering(play) as url:
        assert Client(url, timeout_s=1.5, retries=retries()).health().status == "ok"
        plays.clear()
        lasting = 9
        with pytest.raises(Unreachable):
            Client(url, timeout_s=0.2, retries=retries()).health()
    assert len(plays) == 3


@pytest.mark.parametrize("content", [b"", b"<html>hello\x1b[31m</html>", b"{}", b"\xff\xfe", b"[" * 9_999])
def test_invalid_response_is_not_retried(content):
    with serving((200, content)) as server, pytest.raises(NotUnderstood) as caught:
        Client(server.url, retries=retries()).discover("x")
    assert len(server.requests) == 1
    assert "\x1b" not in str(caught.value)
    assert str(caught.value).endswith("; check the address")


def test_endless_response_is_bounded():
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b" " * 1_000_000)

    with answering(endless) as url, pytest.raises(NotUnderstood, match="bytes"):
        Client(url, timeout_s=20).health()


def test_redirects_are_not_followed():
    with serving((200, HEALTH)) as other, serving((302, b"", {"Location": other.url})) as server:
        with pytest.raises(Refused):
            Client(server.url, auth=Bearer("secret"), retries=retries()).health()
        assert other.requests == []


@pytest.mark.parametrize("url", [
    "http://mats.example.com", "ftp://127.0.0.1", "mats.example.com", "", "https://", "https://u:p@mats.example.com",
    "https://mats.example.com?x=1", "http://127.0.0.1.example.com",
])  # fmt: skip
def test_address_must_be_https_or_local(url):
    with pytest.raises(ValueError, match="address"):
        Client(url, auth=Bearer("secret"))


def test_remote_api_requires_auth():
    with pytest.raises(ValueError, match="SigV4 or Bearer"):
        Client("https://mats.example.com")
    Client("https://mats.example.com/live/", auth=Bearer("secret"))


def test_secrets_do_not_appear_in_repr_or_messages():
    assert "secret" not in repr(Bearer("secret"))
    assert "secret" not in repr(SigV4("eu-north-1", Credentials("id", "secret")))
    for wrong in ("sec\nret", "", "sécret"):
        with pytest.raises(ValueError, match="token") as caught:
            Client("http://127.0.0.1:9", auth=Bearer(wrong)).health()
        assert "sec" not in str(caught.value)


CREDENTIALS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session")


@pytest.mark.parametrize("ask", [lambda mats: mats.discover("é"), lambda mats: mats.capability("com.acme/a b")])
def test_signature_is_the_one_aws_computes_of_the_request(ask):
    """The received request is signed again by botocore, with the time that it names."""
    with serving((404, problem(404))) as server, pytest.raises(NotFound):
        ask(Client(server.url, auth=SigV4("eu-north-1", CREDENTIALS)))
    (request,) = server.requests
    sent = request.headers
    scope, signed, _ = sent["Authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(", ")
    assert scope.endswith("/eu-north-1/execute-api/aws4_request")
    names = signed.removeprefix("SignedHeaders=").split(";")
    assert {"host", "x-amz-date", "x-amz-security-token"} <= set(names)
    headers = {name: value for name, value in sent.items() if name.lower() in names}
    method = "POST" if request.body else "GET"
    again = AWSRequest(method, f"{server.url}{request.target}", headers=headers, data=request.body)
    again.context["timestamp"] = sent["X-Amz-Date"]
    verifier = SigV4Auth(CREDENTIALS, "execute-api", "eu-north-1")
    text = verifier.string_to_sign(again, verifier.canonical_request(again))
    assert sent["Authorization"].endswith(f"Signature={verifier.signature(text, again)}")


def test_missing_credentials_are_an_error(monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ValueError, match="credentials"):
        Client("https://mats.example.com", auth=SigV4("eu-north-1")).health()
