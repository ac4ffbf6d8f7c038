"""The service over HTTP: the contract of the API, bad input, and changes that arrive while it runs."""

import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from mats.edge.schema import Health, Problem
from tests.command import ask
from tests.integration.conftest import Mats, serving, tool

ITEMS = [
    tool("refund", description="Give money back for a card payment", tags=["pay"]),
    tool("docs/read file", description="Read a file of the documentation"),
    tool("secret", description="Payroll money", visible_to=["finance"]),
]


def test_docs_page_loads_no_remote_files(service):
    status, page = service.request("/docs")
    assert status == 200
    assert "http" not in page.replace("<!doctype html>", "")
    for asset in ("/docs/assets/swagger-ui.css", "/docs/assets/swagger-ui-bundle.js", "/static/docs.js"):
        assert asset in page
        assert service.request(asset)[0] == 200


@pytest.mark.parametrize("path", ["/healthz", "/openapi.json", "/capabilities", "/docs", "/static/docs.js", "/"])
def test_a_head_has_the_headers_of_a_get(service, path):
    answer = ask(service, path, method="HEAD")
    assert (answer.status, answer.text, answer.headers["x-content-type-options"]) == (200, "", "nosniff")
    framed = path in ("/docs", "/")
    assert ("frame-ancestors 'none'" in answer.headers.get("content-security-policy", "")) is framed


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/discover", b"{", 400),
        ("POST", "/discover", b'{"query": 5}', 422),
        ("POST", "/discover", b'{"query": "' + b"x" * 10_000_000 + b'"}', 413),
        ("GET", "/discover", None, 405),
        ("GET", "/nowhere", None, 404),
        ("GET", "/capabilities/com.acme/secret", None, 404),
        ("GET", "/docs/assets/../../service.py", None, 404),
    ],
)
def test_a_wrong_request_is_a_problem_and_the_service_goes_on(service, method, path, body, status):
    got, answer = service.request(path, method=method, raw=body)
    assert (got, Problem.model_validate(answer).status) == (status, status)
    assert Health.model_validate(service.request("/healthz")[1]).status == "ok"


def test_a_hundred_concurrent_requests_are_answered(service):
    with ThreadPoolExecutor(100) as pool:
        statuses = list(pool.map(lambda n: service.request("/discover", {"query": f"money {n}"})[0], range(300)))
    assert statuses == [200] * 300


def test_service_listens_on_loopback_only(service):
    port = int(service.url.rpartition(":")[2])
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in others:
        with socket.socket() as probe:
            probe.settimeout(2)
            assert address.startswith("127.") or probe.connect_ex((address, port)) != 0


def test_a_head_that_does_not_end_is_refused(service):
    with socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2])), timeout=20) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 50_000)
        assert connection.recv(100).startswith(b"HTTP/1.1 400")


def test_sample_is_loaded_once(tmp_path):
    stocked = Mats(tmp_path / "home")
    with serving(stocked, "--sample") as first:
        count = stocked("stats", "--json").json["registered"]
        assert count >= 120
        assert first.request("/discover", {"query": "refund a customer's card payment"})[1]["results"]
    assert stocked("remove", "com.amazon.bedrock/amazon.nova-micro-v1:0").code == 0
    with serving(stocked, "--sample"):
        assert stocked("stats", "--json").json["registered"] == count - 1
