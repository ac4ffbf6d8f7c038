"""Agentic Resource Discovery over HTTP, against the real service and models of the published OpenAPI."""

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests import ard_models as ard
from tests.integration.conftest import Mats, Service, serving
from tests.integration.test_cli import rows, tool

EVIL = ('a/b c?d#e%f"<g>', "返金/返品", "..", "%2e%2e", "_x20_ _x", "'; --", "urn:air:a:b")


@pytest.fixture(scope="module")
def mats(tmp_path_factory) -> Mats:
    return Mats(tmp_path_factory.mktemp("ard") / "home")


@pytest.fixture(scope="module")
def service(mats: Mats) -> Iterator[Service]:
    items = [
        tool(
            "get_forecast", description="Weather forecast of a city", tags=["mcp", "weather"],
            endpoint="https://weather.example.com/mcp", examples=["will it rain in Paris", "forecast for Seattle"],
        ),
        tool("wind", description="Weather: wind now", namespace="toolbench"),
        tool("guide", description="Weather guide", kind="agent", tags=["a2a"], endpoint="https://example.com/guide"),
        tool("payroll", description="Weather of the payroll", visible_to=["finance"]),
        *(tool(name, description=f"Weather of {name}", namespace="com.evil") for name in EVIL),
    ]  # fmt: skip
    assert mats("import", "-", stdin=rows(*items)).code == 0
    with serving(mats) as running:
        yield running


def sent(
    service: Service, method: str, target: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, str], str]:
    """A request spelt exactly so."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=20)
    try:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, target, data, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, {name.lower(): said for name, said in answer.getheaders()}, answer.read().decode()
    finally:
        connection.close()


def listed(service: Service, query: str = "") -> list[dict[str, Any]]:
    """All items of a list, page by page."""
    items, token = [], ""
    while True:
        status, _, body = sent(service, "GET", f"/agents?{query}&pageToken={token}")
        assert status == 200, body
        ard.ListResponse.model_validate_json(body)
        items += json.loads(body)["items"]
        token = json.loads(body).get("pageToken", "")
        if not token:
            return items


def test_probes_of_the_conformance_tool_pass(service):
    status, _, body = sent(service, "GET", "/agents")
    assert status == 200
    known = json.loads(body)["items"][0]["identifier"]
    probe = {
        "query": {"text": "weather forecast tools", "filter": {"type": ["application/mcp-server-card+json"]}},
        "federation": "none",
        "pageSize": 2,
    }
    status, headers, body = sent(service, "POST", "/search", probe)
    assert (status, headers["content-type"]) == (200, "application/json")
    (result,) = ard.SearchResponse.model_validate_json(body).results
    assert result.displayName == "get_forecast"
    for urn in (known, result.identifier):
        status, _, body = sent(service, "GET", f"/agents/{quote(urn, safe='')}")
        assert status == 200
        assert ard.Entry.model_validate_json(body).identifier == urn
    for urn, expected in (("urn:air:ard-conformance.invalid:probe:not-found", 404), ("not-a-valid-ard-urn", 400)):
        status, _, body = sent(service, "GET", f"/agents/{quote(urn, safe='')}")
        assert (status, ard.Error.model_validate_json(body).errorCode) == (expected, ard.CODES[expected])
    explore = {"query": {"text": "weather"}, "resultType": {"facets": [{"field": "type"}]}}
    assert sent(service, "POST", "/explore", explore)[0] == 501


def test_every_entry_is_reachable_from_the_manifest(service):
    status, headers, body = sent(service, "GET", "/.well-known/ard.json")
    assert (status, headers["content-type"]) == (200, "application/json")
    (registry,) = ard.Manifest.model_validate_json(body).entries
    assert str(registry.url).rstrip("/") == service.url
    assert len(listed(service)) == 3 + len(EVIL)


@pytest.mark.parametrize("size", [1, 4, 100])
def test_pages_are_stable_and_complete(service, size):
    names = [item["displayName"] for item in listed(service, f"pageSize={size}")]
    assert names == [item["displayName"] for item in listed(service)]
    assert set(names) == {"get_forecast", "wind", "guide", *EVIL}


def test_any_name_is_found_by_identifier_and_address(service):
    for item in listed(service, "filter=publisherId%3D%27evil.com%27"):
        status, _, body = sent(service, "GET", f"/agents/{quote(item['identifier'], safe='')}")
        assert (status, json.loads(body)) == (200, item)
        status, _, body = sent(service, "GET", item["url"].removeprefix(service.url))
        assert (status, json.loads(body)["name"]) == (200, item["displayName"])


def test_hidden_capabilities_appear_nowhere(service):
    assert "payroll" not in json.dumps(listed(service))
    _, _, found = sent(service, "POST", "/search", {"query": {"text": "payroll weather"}, "pageSize": 100})
    assert "payroll" not in found
    hidden = sent(service, "GET", "/agents/urn:air:acme.com:tool:payroll")
    unknown = sent(service, "GET", "/agents/urn:air:acme.com:tool:payrol1")
    assert hidden[0] == unknown[0] == 404
    assert hidden[2].replace("payroll", "payrol1") == unknown[2]


def test_audiences_see_their_capabilities(mats, service, monkeypatch):
    monkeypatch.setenv("MATS_AUDIENCES", "finance")
    with serving(mats) as running:
        assert "payroll" in {item["displayName"] for item in listed(running, "pageSize=3")}
        assert sent(running, "GET", "/agents/urn:air:acme.com:tool:payroll")[0] == 200


def test_second_request_with_etag_gets_not_modified(service):
    _, headers, _ = sent(service, "GET", "/agents/urn:air:acme.com:agent:guide")
    again = {"If-None-Match": headers["etag"]}
    status, headers, body = sent(service, "GET", "/agents/urn:air:acme.com:agent:guide", None, **again)
    assert (status, body) == (304, "")
    assert headers["cache-control"].startswith("private")


@pytest.mark.parametrize(
    ("path", "right"),
    [
        ("/search", "POST"), ("/explore", "POST"), ("/agents", "GET"), ("/agents/urn:air:a.b:tool:c", "GET"),
        ("/.well-known/ard.json", "GET"),
    ],
)  # fmt: skip
def test_wrong_method_is_an_ard_error(service, path, right):
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} - {right}:
        status, headers, body = sent(service, method, path, {})
        assert (status, headers["allow"]) == (405, right)
        assert ard.Error.model_validate_json(body).errorCode == "METHOD_NOT_ALLOWED"
    assert sent(service, "HEAD", path)[0] == 405


@pytest.mark.parametrize(
    ("method", "target", "body", "status"),
    [
        ("POST", "/search", b"", 400),
        ("POST", "/search", b"{", 400),
        ("POST", "/search", b"\xff\x00", 400),
        ("POST", "/search", b"[" * 50_000, 400),
        ("POST", "/search", b'{"query": {"text": "' + b"x" * 500_000 + b'"}}', 413),
        ("POST", "/search", {"query": {"text": ["x"]}}, 400),
        ("POST", "/search", {"query": {"text": "x", "filter": {"a": "b"}}}, 400),
        ("POST", "/search", {"query": {"text": "x"}, "pageToken": "AAAA"}, 400),
        ("GET", "/agents?pageToken=AAAA", None, 400),
        ("GET", "/agents?pageSize=1000", None, 400),
        ("GET", "/agents?pageSize=1&pageSize=1", None, 400),
        ("GET", "/agents?filter=%00", None, 400),
        ("GET", "/agents?filter=%ff%fe", None, 400),
        ("GET", "/agents/%ff", None, 400),
        ("GET", "/agents/%", None, 400),
        ("GET", "/agents/", None, 400),
        ("GET", "/agents/../agents", None, 400),
        ("GET", "/agents/urn%3Aair%3Aa.b%3Atool%3A" + "x" * 20_000, None, 400),
        ("GET", "/agents/urn:air:a.b:tool:c/", None, 400),
    ],
)
def test_invalid_requests_are_ard_errors(service, method, target, body, status):
    got, headers, said = sent(service, method, target, body)
    assert got == status, said
    assert headers["content-type"] == "application/json"
    assert ard.Error.model_validate_json(said).errorCode == ard.CODES.get(status, "REQUEST_TOO_LARGE")


def test_other_paths_and_pages_are_unaffected(service):
    status, headers, _ = sent(service, "GET", "/capabilities/com.acme/nothing")
    assert (status, headers["content-type"]) == (404, "application/problem+json")
    assert sent(service, "GET", "/docs")[0] == 200
    paths = json.loads(sent(service, "GET", "/openapi.json")[2])["paths"]
    assert paths.keys() >= {"/search", "/agents", "/agents/{identifier}", "/explore", "/.well-known/ard.json"}
