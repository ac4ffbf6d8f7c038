"""Agentic Resource Discovery over fakes: requests as API Gateway hands them over, answers as the specification has."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mats.domain.capability.capability import Kind, capability_id
from mats.domain.errors import DependencyFailed, RequestInvalid
from mats.domain.profile.profile import Cause, Enrichment
from mats.domain.text.fence import spell_out
from mats.edge import http, openapi
from mats.edge.ard.endpoints import make_token, parse_token
from mats.edge.ard.entries import (
    AGENT_CARD,
    SERVER_CARD,
    SKILL,
    ArdEntry,
    ard_error,
    identifier,
    is_address,
    media_type,
    namespace_of,
    parse_identifier,
    publisher,
)
from tests.ard_schema import CODES, SCHEMA, valid
from tests.aws_events import call
from tests.builders import a_profile, an_earlier_profile
from tests.fakes import MemoryIndex, raising
from tests.world import an_application

BASE = "https://registry.acme.com/live/"
TERM = "https://agenticresourcediscovery.org/ns#"
SECRET = a_profile(namespace="com.acme.pay", name="secret", description="weather refund", visible_to=("finance",))
FORECAST = a_profile(
    namespace="com.acme.weather", name="get_forecast", description="weather forecast of a city",
    tags=("mcp", "weather"), type_tags=("forecasting",), version="1.2.0", provider="Acme",
    endpoint="https://weather.acme.com/mcp", examples=tuple(f"weather in city {n}" for n in range(7)),
)  # fmt: skip
WIND = a_profile(namespace="toolbench", name="wind/now: é", description="weather wind", tags=("weather",))
GUIDE = a_profile(
    namespace="com.acme", name="guide", kind="agent", description="weather guide", tags=("a2a",),
    endpoint="https://acme.com/guide", lifecycle="deprecated",
)  # fmt: skip
SLIDES = a_profile(
    namespace="com.acme", name="slides", kind="skill", description="weather slides",
    endpoint="https://acme.com/SKILL.md",
)  # fmt: skip
NOVA = a_profile(
    namespace="com.amazon", name="nova-v1:0", kind="model", description="weather model",
    endpoint="arn:aws:bedrock:eu-west-1::foundation-model/nova",
)  # fmt: skip
PUBLIC = (FORECAST, WIND, GUIDE, SLIDES, NOVA)
ALL = (*PUBLIC, SECRET)


def ask(method: str, path: str, body: Any = None, *, application=None, context=None, **more: Any) -> http.Response:
    here = {"domainName": "registry.acme.com", "path": f"/live{path}", "stage": "live"} if context is None else context
    return call(application or an_application(*ALL), method, path, body, **here, **more)


def found(response: http.Response, schema: str) -> Any:
    assert (response.status, response.headers["Content-Type"]) == (200, "application/json"), response.body
    return valid(schema, response.body)


def refused(response: http.Response, status: int) -> str:
    assert (response.status, response.headers["Content-Type"]) == (status, "application/json"), response.body
    error = valid("Error", response.body)
    assert error["errorCode"] == CODES.get(status, error["errorCode"])
    return error["message"]


def search(text: str = "weather", *, filter: Any = None, **more: Any) -> http.Response:
    query = {"text": text, **({} if filter is None else {"filter": filter})}
    beside = {name: more.pop(name) for name in ("federation", "pageSize", "pageToken") if name in more}
    return ask("POST", "/search", {"query": query, **beside}, **more)


def names(response: http.Response) -> set[str]:
    answer = json.loads(response.body)
    assert response.status == 200, response.body
    return {one["displayName"] for one in answer.get("results", answer.get("items"))}


def pages(size: int, **more: Any) -> Iterator[Any]:
    token = ""
    while token is not None:
        answer = found(ask("GET", "/agents", query=f"pageSize={size}&pageToken={token}", **more), "ListResponse")
        yield answer
        token = answer.get("pageToken")


@pytest.mark.parametrize(("wanted", "expected"), [
    ({"type": [SERVER_CARD]}, {"get_forecast"}), ({"type": [AGENT_CARD, SKILL]}, {"guide", "slides"}),
    ({"type": "application/vnd.mats.tool+json"}, {"wind/now: é"}),
    ({"type": ["application/vnd.mats.model+json", SERVER_CARD]}, {"nova-v1:0", "get_forecast"}),
    ({"type": ["text/html"]}, set()), ({"tags": ["a2a", "mcp"]}, {"get_forecast", "guide"}),
    ({"tags": "weather", "type": [SERVER_CARD]}, {"get_forecast"}),
    ({"publisher": ["acme.com", "toolbench.localhost"], "tags": ["weather"]}, {"wind/now: é"}),
    ({"publisher": "pay.acme.com"}, set()), ({"publisher": "com"}, set()),
    ({}, {profile.name for profile in PUBLIC}), ({f"{TERM}tags": ["a2a"]}, {"guide"}),
])  # fmt: skip
def test_filters_match_any_value_of_every_key(wanted, expected):
    assert names(search(filter=wanted)) == expected


def test_pages_of_results_are_disjoint_and_complete():
    whole = [one["identifier"] for one in found(search(pageSize=100), "SearchResponse")["results"]]
    first = found(search(pageSize=3), "SearchResponse")
    second = found(search(pageSize=3, pageToken=first["pageToken"]), "SearchResponse")
    assert [one["identifier"] for one in (*first["results"], *second["results"])] == whole
    assert "pageToken" not in second
    refused(ask("GET", "/agents", query=f"pageToken={first['pageToken']}"), 400)


def test_federation_has_no_referrals():
    assert found(search(federation="referrals"), "SearchResponse")["referrals"] == []
    assert "referrals" not in found(search(federation="none"), "SearchResponse")


@pytest.mark.parametrize(("body", "status"), [
    *((body, 400) for body in (
        None, [], {}, {"query": "weather"}, {"query": {}}, {"query": {"text": "  "}}, {"query": {"text": 5}},
        {"query": {"text": "x" * 2_001}}, {"query": {"text": "x"}, "limit": 3}, {"query": {"text": "x"}, "pageSize": 0},
        {"query": {"text": "x"}, "pageSize": 101}, {"query": {"text": "x"}, "pageSize": "5"},
        {"query": {"text": "x"}, "federation": "all"}, {"query": {"text": "x"}, "pageToken": "WzFd"},
        {"query": {"text": "\ud800"}}, {"query": {"text": "x", "filter": {"\ud800": ["y"]}}},
        {"query": {"text": "x", "filter": {f"k{n}": ["y"] for n in range(30)}}},
        *({"query": {"text": "x", "filter": wanted}} for wanted in (
            {"metadata.kind": ["tool"]}, {"tags": []}, {"tags": [1]}, {"tags": [""]}, "x",
        )),
        b"query=x", b"\xff\xfe", b"[" * 60_000,
    )),
    (b'{"query": {"text": "' + b"x" * 70_000 + b'"}}', 413),
])  # fmt: skip
def test_invalid_search_is_rejected(body, status):
    refused(ask("POST", "/search", body), status)


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("audiences", [(), ("finance",)])
def test_pages_of_a_list_cover_what_the_caller_may_see_in_order_of_id(size, audiences):
    seen = []
    for page in pages(size, audiences=audiences):
        assert len(page["items"]) <= size
        seen += [valid("Entry", item)["metadata"]["id"] for item in page["items"]]
        token = base64.urlsafe_b64decode(page.get("pageToken", "") + "==").decode()
        assert "secret" not in token or audiences
    assert seen == sorted(profile.id for profile in (ALL if audiences else PUBLIC))


@pytest.mark.parametrize("query", [
    "pageSize=0", "pageSize=101", "pageSize=ten", "pageSize=", "pageSize=١", "pageSize=1&pageSize=2",
    "orderBy=displayName", "pageToken=x", "pageToken=WzFd", "filter=type%20%3D%20%27tool%27",
])  # fmt: skip
def test_invalid_list_request_is_rejected_with_a_reason(query):
    assert len(refused(ask("GET", "/agents", query=query), 400)) < 400


def test_page_stays_below_the_response_limit():
    wide = tuple(f"{n}{'é' * 190}" for n in range(100))
    one = a_profile(tags=wide, type_tags=wide, examples=wide)
    profiles = [one.model_copy(update={"name": f"n{n:03}"}) for n in range(100)]
    found = list(pages(100, application=an_application(*profiles)))
    assert len(found) > 1
    assert all(len(json.dumps(page, ensure_ascii=False).encode()) < 4_500_000 for page in found)
    assert [item["displayName"] for page in found for item in page["items"]] == [one.name for one in profiles]


@given(st.text(st.characters(exclude_categories=("Cs",))), st.integers(1, 10_000))
def test_page_token_round_trips_for_its_kind_of_page(place, offset):
    assert parse_token(make_token(place), str) == place
    assert parse_token(make_token(offset), int) == offset
    with pytest.raises(RequestInvalid):
        parse_token(make_token(offset), str)


@pytest.mark.parametrize("position", [None, True, 1.5, [], {}, "x", -1, 0])
def test_forged_offset_is_rejected(position):
    with pytest.raises(RequestInvalid):
        parse_token(make_token(position), int)


def test_forged_position_reveals_nothing_and_breaks_nothing():
    refused(ask("GET", "/agents", query=f"pageToken={make_token(chr(0xD800))}"), 400)
    token = make_token("com.acme.pay/secre")
    assert "secret" not in names(ask("GET", "/agents", query=f"pageToken={token}"))


def shown(urn: str, **more: Any) -> http.Response:
    return ask("GET", f"/agents/{quote(urn, safe='')}", **more)


def test_entry_has_the_known_attributes_only():
    known = FORECAST.model_copy(update={"cause": Cause(event_id="1", time="2026-01-01T00:00:00Z"), "trust": 90})
    assert ArdEntry.of(known, BASE).model_dump(by_alias=True, exclude_none=True) == {
        "identifier": "urn:air:weather.acme.com:tool:get_forecast",
        "displayName": "get_forecast",
        "type": "application/mcp-server-card+json",
        "url": "https://weather.acme.com/mcp",
        "description": "weather forecast of a city",
        "tags": ["mcp", "weather"],
        "capabilities": ["forecasting"],
        "representativeQueries": [f"weather in city {n}" for n in range(5)],
        "version": "1.2.0",
        "updatedAt": "2026-01-01T00:00:00+00:00",
        "metadata": {
            "id": "com.acme.weather/get_forecast", "kind": "tool", "lifecycle": "active", "enriched": False,
            "protocol": "mcp", "provider": "Acme", "providerVerified": False,
        },
    }  # fmt: skip
    bare = a_profile(namespace="com.acme", name="x", description="").model_copy(update={"enrichment": Enrichment()})
    assert ArdEntry.of(bare, BASE).model_dump(by_alias=True, exclude_none=True) == {
        "identifier": "urn:air:acme.com:tool:x",
        "displayName": "x",
        "type": "application/vnd.mats.tool+json",
        "url": f"{BASE}capabilities/com.acme/x",
        "metadata": {"id": "com.acme/x", "kind": "tool", "lifecycle": "active", "enriched": False},
    }


@pytest.mark.parametrize(("kind", "endpoint", "tags", "expected"), [
    ("tool", "https://a.example/mcp", ("MCP",), SERVER_CARD),
    ("tool", "https://a.example/mcp", ("a2a",), "application/vnd.mats.tool+json"),
    ("tool", "", ("mcp",), "application/vnd.mats.tool+json"),
    ("agent", "http://localhost:8080/a2a", ("a2a",), AGENT_CARD),
    ("agent", "arn:aws:bedrock:eu-west-1:1:agent/x", ("a2a",), "application/vnd.mats.agent+json"),
    ("skill", "https://a.example/SKILL.md", (), SKILL),
    ("model", "https://a.example/v1", ("mcp", "a2a"), "application/vnd.mats.model+json"),
])  # fmt: skip
def test_protocol_needs_a_tag_and_an_address(kind, endpoint, tags, expected):
    assert media_type(a_profile(kind=kind, endpoint=endpoint, tags=tags)) == expected


@pytest.mark.parametrize("endpoint", [
    "", "ftp://a.example", "javascript:alert(1)", "https:///x", "https://[", "https://a b", 'https://a.example/"',
    "https://a.example/\n", "https://a.example/é", "//a.example", "http://a.example\\@b.example", "https://?x",
])  # fmt: skip
def test_invalid_address_is_not_used_as_url(endpoint):
    assert not is_address(endpoint)


def test_hidden_and_missing_entries_get_equal_responses():
    secret, unknown = "urn:air:pay.acme.com:tool:secret", "urn:air:pay.acme.com:tool:secre7"
    hidden, missing = shown(secret), shown(unknown)
    assert refused(hidden, 404).replace(secret, "") == refused(missing, 404).replace(unknown, "")
    assert hidden.headers == missing.headers
    assert hidden.headers["Cache-Control"] == "no-cache"
    assert found(shown(secret, audiences=["finance"]), "Entry")["displayName"] == "secret"


@pytest.mark.parametrize(("path", "status"), [
    *((quote(urn, safe=""), 404) for urn in (
        "urn:air:ard-conformance.invalid:probe:not-found", "urn:air:weather.acme.com:agent:get_forecast",
        "urn:air:weather.acme.com:tool:Get_forecast", "urn:air:WEATHER.acme.com:tool:get_forecast",
    )),
    *((path, 400) for path in ("", "nope", "%", "%zz", "%ff", "urn%253Aair%253Aacme.com%253Atool%253Ax", "%2e%2e")),
])  # fmt: skip
def test_unknown_identifier_is_not_found_and_an_invalid_one_rejected(path, status):
    refused(ask("GET", f"/agents/{path}"), status)


@pytest.mark.parametrize(("headers", "context", "base", "publisher"), [
    (None, None, BASE, "registry.acme.com"),
    ({"Host": "127.0.0.1:8765"}, {}, "http://127.0.0.1:8765/", "mats.localhost"),
    ({"host": "[::1]:8765"}, {}, "http://[::1]:8765/", "mats.localhost"),
    ({"Host": "find.acme.com", "X-Forwarded-Proto": "https"}, {}, "https://find.acme.com/", "find.acme.com"),
    ({"Host": "find.acme.com", "X-Forwarded-Proto": "gopher"}, {}, "http://find.acme.com/", "find.acme.com"),
    ({"Host": "evil.example/x?"}, {}, "http://localhost/", "mats.localhost"),
    ({}, {}, "http://localhost/", "mats.localhost"),
    ({"Host": "evil.example"}, {"domainName": "find.acme.com", "path": "/.well-known/ard.json"},
     "https://find.acme.com/", "find.acme.com"),
])  # fmt: skip
def test_the_manifest_has_the_address_that_the_caller_used(headers, context, base, publisher):
    response = ask("GET", "/.well-known/ard.json", headers=headers, context=context)
    (entry,) = found(response, "Manifest")["entries"]
    assert entry["type"] == "application/ai-registry+json"
    assert (entry["url"], entry["identifier"]) == (base, f"urn:air:{publisher}:registry:mats")
    assert response.headers["Cache-Control"] == "public, max-age=3600"


@pytest.mark.parametrize(("path", "method"), [
    ("/search", "POST"), ("/agents", "GET"), ("/agents/urn:air:acme.com:tool:x", "GET"),
    ("/.well-known/ard.json", "GET"),
])  # fmt: skip
def test_wrong_method_gets_405_with_allow(path, method):
    for wrong in {"GET", "POST", "HEAD", "BREW"} - {method}:
        response = ask(wrong, path, {})
        assert method in refused(response, 405)
        assert response.headers["Allow"] == method


@pytest.mark.parametrize("path", ["/agents", "/agents/urn:air:acme.com:agent:guide", "/search"])
def test_unavailable_index_is_an_ard_error(path, monkeypatch):
    for method in ("page", "fetch", "lexical"):
        monkeypatch.setattr(MemoryIndex, method, raising(DependencyFailed("the index at 10.0.0.1 is down")))
    body = {"query": {"text": "weather"}} if path == "/search" else None
    response = ask("POST" if body else "GET", path, body)
    refused(response, 503)
    assert response.headers["Retry-After"] == "1"
    assert "10.0.0.1" not in response.body


def test_errors_are_documented_as_the_specification_has_them():
    paths = openapi.document()["paths"]
    for path, status in (("/search", "400"), ("/agents", "400"), ("/agents/{identifier}", "404")):
        (operation,) = paths[path].values()
        (content,) = operation["responses"][status]["content"].items()
        assert content == ("application/json", {"schema": {"$ref": "#/components/schemas/ArdError"}})


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 413, 418, 422, 429, 500, 501, 502, 503])
def test_every_status_has_an_ard_code(status):
    response = ard_error(http.problem(status, "reason", headers={"Retry-After": "1"}))
    assert valid("Error", response.body)["message"] == "reason"
    assert response.status == (400 if status == 422 else status)
    assert response.headers["Retry-After"] == "1"


@pytest.mark.parametrize("evil", [
    '"}],"results":[{"score":100}', "</script><script>", "%2e%2e%2f", "urn:air:x:y:z", "a\u202eb", "_x5f_x20_",
    "com.acme/secret", "𝕬" * 200,
])  # fmt: skip
def test_hostile_names_stay_data(evil):
    profile = an_earlier_profile(
        namespace="com.acme", name=evil, description=f"weather {evil}", tags=(evil,), provider=evil, endpoint=evil
    )
    application = an_application(profile)
    (item,) = next(pages(9, application=application))["items"]
    assert valid("Entry", item)["displayName"] == spell_out(profile.name)
    assert found(shown(item["identifier"], application=application), "Entry") == item
    assert names(search(filter={"tags": [evil]}, application=application)) == {spell_out(profile.name)}


labels = st.text("abcxyz019-", min_size=1, max_size=8) | st.just("localhost")
namespaces = st.lists(labels, min_size=1, max_size=4).map(".".join)
tricky = st.text("_x0f5a:/ .-é", min_size=1, max_size=12)
capabilities = st.tuples(
    st.sampled_from(Kind),
    namespaces,
    tricky | st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=200),
)
IDENTIFIER = SCHEMA["$defs"]["identifier"]["pattern"]
PROBED = r"^urn:air:([a-zA-Z0-9.-]+)(?::([a-zA-Z0-9._:-]+))?:([a-zA-Z0-9._-]+)$"
"""The identifier that the conformance tool accepts, a little stricter."""


@given(capabilities, capabilities)
@example((Kind.TOOL, "localhost", "_x5 "), (Kind.TOOL, "localhost.a", "_x5_x20_"))
@example((Kind.SKILL, "a", "__x20__"), (Kind.AGENT, "a", "\U0010ffff"))
def test_identifiers_round_trip_and_are_unique(one, other):
    urn = identifier(*one)
    assert re.fullmatch(IDENTIFIER, urn)
    assert re.fullmatch(PROBED, urn)
    assert parse_identifier(urn) == (one[0], capability_id(*one[1:]))
    assert (urn == identifier(*other)) is (one == other)
    assert "." in publisher(one[1])
    assert namespace_of(publisher(one[1])) == one[1]


@pytest.mark.parametrize("text", [
    "", "nope", "urn:air:acme.com", "urn:air:acme.com:", "urn:air::tool:x", "urn:air:acme.com::x",
    "URN:AIR:acme.com:tool:x", "urn:air:acme.com:tool:a b", "urn:air:acme_corp:tool:x", "urn:air:acme.com:tool:x\n",
    "urn:air:acme.com:tool:é", f"urn:air:acme.com:tool:{'x' * 9_000}",
])  # fmt: skip
def test_identifier_that_breaks_the_specification_is_rejected(text):
    with pytest.raises(RequestInvalid):
        parse_identifier(text)


@pytest.mark.parametrize("text", [
    "urn:air:acme.com:x",
    "urn:air:acme.com:tool",
    "urn:air:acme.com:Tool:x",
    "urn:air:acme:tool:x",  # no fully qualified name: ours has .localhost behind it
    "urn:air:acme.com.localhost:tool:x",  # and only where it is needed
    "urn:air:acme.com:tool:a_x62_c",  # an escape of what needs none
    "urn:air:acme.com:tool:a_x020_c",
    "urn:air:acme.com:tool:a_xd800_",
    "urn:air:acme.com:tool:a_xffffff_",
])  # fmt: skip
def test_identifier_that_we_never_issue_names_nothing(text):
    assert parse_identifier(text) is None
