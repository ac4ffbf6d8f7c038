"""Agentic Resource Discovery over HTTP, against the real service and the published schema."""

import json
from urllib.parse import quote

import pytest

from tests.ard_schema import CODES, valid
from tests.command import ask
from tests.integration.conftest import tool

EVIL = ('a/b c?d#e%f"<g>', "返金/返品", "...", "%2e%2e", "urn:air:a:b")
ITEMS = [
    tool(
        "get_forecast", description="Weather forecast of a city", tags=["mcp", "weather"],
        endpoint="https://weather.example.com/mcp", examples=["will it rain in Paris", "forecast for Seattle"],
    ),
    tool("guide", description="Weather guide", kind="agent", tags=["a2a"], endpoint="https://example.com/guide"),
    tool("payroll", description="Weather of the payroll", visible_to=["finance"]),
    *(tool(name, description=f"Weather of {name}", namespace="com.evil") for name in EVIL),
]  # fmt: skip


def test_probes_of_the_conformance_tool_pass(service):
    status, headers, body = ask(service, "/.well-known/ard.json")
    (registry,) = valid("Manifest", body)["entries"]
    assert registry["url"].rstrip("/") == service.url
    items = valid("ListResponse", ask(service, "/agents")[2])["items"]
    assert {item["displayName"] for item in items} == {"get_forecast", "guide", *EVIL}
    probe = {
        "query": {"text": "weather forecast tools", "filter": {"type": ["application/mcp-server-card+json"]}},
        "federation": "none",
        "pageSize": 2,
    }
    status, headers, body = ask(service, "/search", probe, method="POST")
    assert (status, headers["content-type"]) == (200, "application/json")
    (result,) = valid("SearchResponse", body)["results"]
    assert result["displayName"] == "get_forecast"
    for urn, expected in (("urn:air:ard-conformance.invalid:probe:not-found", 404), ("not-a-valid-ard-urn", 400)):
        status, _, body = ask(service, f"/agents/{quote(urn, safe='')}")
        assert (status, valid("Error", body)["errorCode"]) == (expected, CODES[expected])
    assert ask(service, "/explore", {"query": {"text": "weather"}}, method="POST").status == 404


def test_any_name_is_found_by_identifier_and_address(service):
    _, _, page = ask(service, "/agents")
    items = [item for item in json.loads(page)["items"] if item["displayName"] in EVIL]
    assert len(items) == len(EVIL)
    for item in items:
        status, _, body = ask(service, f"/agents/{quote(item['identifier'], safe='')}")
        assert (status, valid("Entry", body)) == (200, item)
        status, _, body = ask(service, item["url"].removeprefix(service.url))
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
    answered, headers, text = ask(service, target, method=method, raw=body)
    assert (answered, headers["content-type"]) == (status, "application/json")
    assert not code or valid("Error", text)["errorCode"] == code
