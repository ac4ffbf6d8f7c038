"""The service over HTTP: the contract of the API, bad input, and changes that arrive while it runs."""

import json
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mats.edge.answers import Answer, Capability, Health, Problem
from tests.integration.conftest import Mats, Service, serving, wait_until
from tests.integration.test_cli import rows, tool


@pytest.fixture(scope="module")
def mats(tmp_path_factory) -> Mats:
    return Mats(tmp_path_factory.mktemp("service") / "home")


@pytest.fixture(scope="module")
def service(mats: Mats) -> Iterator[Service]:
    items = [
        tool("refund", description="Give money back for a card payment", tags=["pay"]),
        tool("docs/read file", description="Read a file of the documentation"),
        tool("secret", description="Payroll money", visible_to=["finance"]),
    ]
    assert mats("import", "-", stdin=rows(*items)).code == 0
    with serving(mats) as running:
        yield running


def test_answer_matches_the_contract(service):
    status, body = service.request("/discover", {"query": "money back", "explain": True, "limit": 3})
    assert status == 200
    answer = Answer.model_validate(body)
    first = answer.results[0]
    assert first.id == "com.acme/refund"
    assert first.why is not None
    assert answer.took_ms["total"] >= 0
    assert sum(first.weights.values()) == pytest.approx(1, abs=1e-3)


def test_slashes_in_ids_may_be_percent_encoded(service):
    for path in ("/capabilities/com.acme/docs/read%20file", "/capabilities/com.acme%2Fdocs%2Fread%20file"):
        status, body = service.request(path)
        assert status == 200
        assert Capability.model_validate(body).name == "docs/read file"


def test_hidden_capability_does_not_exist(service):
    hidden = service.request("/capabilities/com.acme/secret")
    unknown = service.request("/capabilities/com.acme/secre7")
    assert hidden[0] == unknown[0] == 404
    assert hidden[1]["detail"].replace("secret", "secre7") == unknown[1]["detail"]
    assert service.request("/discover", {"query": "payroll"})[1]["results"] == []


def test_health_and_openapi_are_served(service):
    assert Health.model_validate(service.request("/healthz")[1]).status == "ok"
    status, document = service.request("/openapi.json")
    assert status == 200
    assert set(document["paths"]) >= {"/discover", "/capabilities/{id}", "/mcp", "/healthz"}


def test_docs_page_loads_no_remote_files(service):
    status, page = service.request("/docs")
    assert status == 200
    assert "http" not in page.replace("<!doctype html>", "")
    for asset in ("/docs/assets/swagger-ui.css", "/docs/assets/swagger-ui-bundle.js", "/static/docs.js"):
        assert asset in page
        assert service.request(asset)[0] == 200


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        (b"", 400, None),
        (b"{", 400, None),
        (b"\xff\xfe", 400, None),
        (b"[" * 50_000, 400, None),
        (b"[]", 422, None),
        (b"{}", 422, "query"),
        (b'{"query": ""}', 422, "query"),
        (b'{"query": 5}', 422, "query"),
        (b'{"query": "x", "kinds": ["robot"]}', 422, "kinds.0"),
        (b'{"query": "x", "limit": 16}', 422, "limit"),
        (b'{"query": "x", "limit": 0}', 422, "limit"),
        (b'{"query": "x", "kind": "tool"}', 422, "kind"),
        (b'{"query": "\\ud800"}', 422, "query"),
        (json.dumps({"query": "x" * 2_001}).encode(), 422, "query"),
        (b'{"query": "' + b"x" * 10_000_000 + b'"}', 413, None),
    ],
)
def test_invalid_request_is_a_problem_with_the_field(service, body: bytes, status: int, field: str | None):
    got, answer = service.request("/discover", raw=body)
    assert got == status, answer
    problem = Problem.model_validate(answer)
    assert problem.status == status
    assert [e.field for e in problem.errors] == ([field] if field else [])
    assert service.request("/healthz")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/discover", 405),
        ("POST", "/healthz", 405),
        ("DELETE", "/capabilities/a/b", 405),
        ("GET", "/nowhere", 404),
        ("GET", "/capabilities/", 404),
        ("GET", "/capabilities/%00", 404),
        ("GET", "/capabilities/a%0Ab", 404),
        ("GET", "/docs/assets/../../service.py", 404),
    ],
)
def test_wrong_methods_and_paths_are_problems(service, method: str, path: str, status: int):
    got, answer = service.request(path, method=method)
    assert (got, Problem.model_validate(answer).status) == (status, status)


def test_registrations_of_other_processes_are_found(mats, service):
    mats("add", "-", stdin=rows(tool("geocode", description="Address to coordinates")))
    wait_until(
        lambda: [r["name"] for r in service.request("/discover", {"query": "coordinates"})[1]["results"]] == ["geocode"]
    )
    mats("remove", "com.acme/geocode")
    wait_until(lambda: service.request("/discover", {"query": "coordinates"})[1]["results"] == [])


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


def test_service_stops_at_once(tmp_path):
    with serving(Mats(tmp_path / "home")) as service:
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(5) == 0


def test_answers_are_logged_with_candidates(mats, service):
    answer = service.request("/discover", {"query": "money back"})[1]
    log = (mats.home / "mats.log").read_text()
    line = next(line for line in log.splitlines() if answer["query_id"] in line)
    record = json.loads(line[line.index("{") :])
    assert record["query"] == "money back"
    assert record["candidates"][0]["id"] == "com.acme/refund"


def test_sample_is_loaded_once(tmp_path):
    mats = Mats(tmp_path / "home")
    with serving(mats, "--sample") as first:
        count = mats("stats", "--json").json["registered"]
        assert count >= 120
        assert first.request("/discover", {"query": "refund a customer's card payment"})[1]["results"]
    assert mats("remove", "com.amazon.bedrock/amazon.nova-micro-v1:0").code == 0
    with serving(mats, "--sample"):
        assert mats("stats", "--json").json["registered"] == count - 1
