"""Agentic Resource Discovery over HTTP, against the real service and the published schema."""

import http.client
import json
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.ard_schema import CODES, valid
from tests.integration.conftest import Service, tool

EVIL = ('a/b c?d#e%f"<g>', "返金/返品", "..", "%2e%2e", "urn:air:a:b")
ITEMS = [
    tool(
        "get_forecast", description="Weather forecast of a city", tags=["mcp", "weather"],
        endpoint="https://weather.example.com/mcp", examples=["will it rain in Paris", "forecast for Seattle"],
    ),
    tool("guide", description="Weather guide", kind="agent", tags=["a2a"], endpoint="https://example.com/guide"),
    tool("payroll", description="Weather of the payroll", visible_to=["finance"]),
    *(tool(name, description=f"Weather of {name}", namespace="com.evil") for name in EVIL),
]  # fmt: skip


def sent(
    service: Service, method: str, target: str, body: Any = None, **headers: str
) -> tuple[int, dict[str, str], str]:
    """A request spelt exactly so."""
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc, timeout=20)
    try:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        connection.request(method, target, data, {"Content-Type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
    finally:
        connection.close()


def test_probes_of_the_conformance_tool_pass(service):
    status, headers, body = sent(service, "GET", "/.well-known/ard.json")
    (registry,) = valid("Manifest", body)["entries"]
    assert registry["url"].rstrip("/") == service.url
    items = valid("ListResponse", sent(service, "GET", "/agents")[2])["items"]
    assert {item["displayName"] for item in items} == {"get_forecast", "guide", *EVIL}
    probe = {
        "query": {"text": "weather forecast tools", "filter": {"type": ["application/mcp-server-card+json"]}},
        "federation": "none",
        "pageSize": 2,
    }
    status, headers, body = sent(service, "POST", "/search", probe)
    assert (status, headers["content-type"]) == (200, "application/json")
    (result,) = valid("SearchResponse", body)["results"]
    assert result["displayName"] == "get_forecast"
    for urn, expected in (("urn:air:ard-conformance.invalid:probe:not-found", 404), ("not-a-valid-ard-urn", 400)):
        status, _, body = sent(service, "GET", f"/agents/{quote(urn, safe='')}")
        assert (status, valid("Error", body)["errorCode"]) == (expected, CODES[expected])
    assert sent(service, "POST", "/explore", {"query": {"text": "weather"}})[0] == 501


def test_any_name_is_found_by_identifier_and_address(service):
    _, _, page = sent(service, "GET", "/agents?filter=publisherId%3D%27evil.com%27")
    assert len(json.loads(page)["items"]) == len(EVIL)
    for item in json.loads(page)["items"]:
        status, headers, body = sent(service, "GET", f"/agents/{quote(item['identifier'], safe='')}")
        assert (status, valid("Entry", body)) == (200, item)
        again = sent(service, "GET", f"/agents/{item['identifier']}", None, **{"If-None-Match": headers["etag"]})
        assert (again[0], again[2]) == (304, "")
        status, _, body = sent(service, "GET", item["url"].removeprefix(service.url))
        assert (status, json.loads(body)["name"]) == (200, item["displayName"])


@pytest.mark.parametrize(("method", "target", "body", "status", "code"), [
    ("DELETE", "/agents", None, 405, ""),
    ("POST", "/search", b"{", 400, "INVALID_ARGUMENT"),
    ("POST", "/search", b'{"query": {"text": "' + b"x" * 500_000 + b'"}}', 413, "REQUEST_TOO_LARGE"),
    ("GET", "/agents?filter=%ff%fe", None, 400, "INVALID_ARGUMENT"),
    ("GET", "/agents/../agents", None, 400, "INVALID_ARGUMENT"),
    ("GET", "/agents/urn:air:acme.com:tool:payroll", None, 404, "NOT_FOUND"),
])  # fmt: skip
def test_invalid_requests_are_ard_errors(service, method, target, body, status, code):
    answered, headers, text = sent(service, method, target, body)
    assert (answered, headers["content-type"]) == (status, "application/json")
    assert not code or valid("Error", text)["errorCode"] == code
