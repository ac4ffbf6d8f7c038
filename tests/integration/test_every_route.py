"""Every documented endpoint is called once over the running service, and its answer fits the schema it declares."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from jsonschema import Draft202012Validator

from mats.edge import openapi
from mats.edge.route import Route
from mats.edge.routes import ROUTES
from mats.local.console import api
from mats.ports import Encoder
from tests.command import Mats, Service, ask, serving, tool, wait_until

SKILL = {"name": "letters/SKILL.md", "text": "---\nname: letters\ndescription: Writes letters.\n---\nBriefly."}
ID, GONE, HELD = "com.acme/refund", "com.acme/gone", "com.acme/held"
_MCP = {"MCP_Protocol_Version": "2025-06-18", "Accept": "application/json, text/event-stream"}

REQUESTS: dict[str, tuple[str, Any]] = {
    "discover": ("/discover", {"query": "refund a card payment"}),
    "listCapabilities": ("/capabilities", None),
    "getInstructions": ("/capabilities/com.acme/letters/instructions", None),
    "getCapability": (f"/capabilities/{ID}?snippets=true", None),
    "mcp": ("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    "health": ("/healthz", None),
    "ardSearch": ("/search", {"query": {"text": "refund a card payment"}}),
    "ardList": ("/agents", None),
    "ardManifest": ("/.well-known/ard.json", None),
    "getRegistration": (f"/registry/capabilities/{ID}", None),
    "putRegistration": (f"/registry/capabilities/{GONE}", tool("gone", description="Goes again.")),
    "editRegistration": (f"/registry/capabilities/{GONE}", {"description": "Goes soon."}),
    "removeRegistration": (f"/registry/capabilities/{GONE}", None),
    "listRegistrations": ("/registry/capabilities", None),
    "importDocuments": ("/registry/import", {"namespace": "com.acme", "documents": [SKILL]}),
    "registerBatch": ("/registry/capabilities", {"registrations": [tool("two", description="Two.")]}),
    "previewRegistration": ("/registry/preview", tool("three", description="Reads three books.")),
    "getTrust": (f"/registry/trust?target={ID}", None),
    "assignTrust": ("/registry/trust", {"target": ID, "trust": 80}),
    "listHeld": ("/registry/review", None),
    "listLessons": ("/registry/lessons", None),
    "teach": ("/registry/lessons", {"request": "give it back", "id": ID}),
    "overview": ("/registry", None),
    "use": ("/registry/use", None),
}  # fmt: skip
"""A request of each, by its operation; those of AFTER need an answer before."""
AFTER = {"feedback", "ardRetrieve", "review"}
DOCUMENTED = [route for route in (*ROUTES, *api.ROUTES) if route.operation_id]
DOCUMENT = openapi.document(DOCUMENTED)


def test_every_documented_endpoint_has_a_request():
    assert {route.operation_id for route in DOCUMENTED} == {*REQUESTS, *AFTER}


@pytest.fixture(scope="module")
def answering(encoder: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a tool, a skill, and a change that waits for an operator."""

    def write(path: str, body: Any, method: str = "POST") -> None:
        assert ask(service, path, body, method=method, Origin=service.url).status == 200

    with serving(Mats(tmp_path_factory.mktemp("routes") / "home", encoder="all-MiniLM-L6-v2")) as service:
        write("/registry/capabilities", {"registrations": [tool("refund", description="Give money back for a card")]})
        write("/registry/import", {"namespace": "com.acme", "documents": [SKILL], "dry_run": False})
        write(f"/registry/capabilities/{HELD}", tool("held", endpoint="https://good.example.net/x"), "PUT")
        write("/registry/trust", {"target": HELD, "trust": 90})
        write(f"/registry/capabilities/{HELD}", tool("held", endpoint="https://evil.example.net/x"), "PUT")
        wait_until(lambda: len(service.request("/capabilities")[1]["capabilities"]) == 3)
        yield service


@pytest.mark.parametrize("route", DOCUMENTED, ids=lambda route: route.operation_id)
def test_an_answer_fits_the_schema_of_its_endpoint(answering: Service, route: Route):
    path, body = request_of(answering, route.operation_id)
    more = _MCP if route.operation_id == "mcp" else {"Content_Type": media_type(route)} if body is not None else {}
    reply = ask(answering, path, body, method=route.method, Origin=answering.url, **more)
    declared = DOCUMENT["paths"][route.documented_path][route.method.lower()]["responses"]
    assert str(reply.status) in declared, reply
    assert reply.status < 300, reply
    content = declared[str(reply.status)]["content"]
    kind = reply.headers["content-type"].partition(";")[0]
    value = reply.json if kind.endswith("json") else reply.text
    Draft202012Validator({**content[kind]["schema"], "components": DOCUMENT["components"]}).validate(value)


def request_of(service: Service, operation: str) -> tuple[str, Any]:
    if operation == "feedback":
        answer = service.request("/discover", {"query": "refund a card payment"})[1]
        return "/feedback", {"query_id": answer["query_id"], "outcomes": [{"id": ID, "event": "succeeded"}]}
    if operation == "ardRetrieve":
        found = service.request("/agents")[1]
        return f"/agents/{quote(found['items'][0]['identifier'])}", None
    if operation == "review":
        (held,) = service.request("/registry/review")[1]["waiting"]
        return "/registry/review", {"id": held["id"], "digest": held["digest"], "approve": True}
    return REQUESTS[operation]


def media_type(route: Route) -> str:
    return route.request.media_type if route.request else "application/json"
