"""The middleware that tells observers of requests."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from mats.local.places import FindPlace
from mats.local.service import OTHER, ObservedRequests
from mats.ports import RequestHandled
from tests.fakes import FakeClock


def answers_to(*requests: tuple[str, str, dict[str, str]]) -> tuple[list[RequestHandled], list[Response]]:
    """What is observed, and the responses, of a service in which /mcp raises."""
    seen: list[RequestHandled] = []

    async def discover(request: Request) -> Response:
        return Response(request.scope["mats.request_id"], 201)

    async def bug(request: Request) -> Response:
        raise ZeroDivisionError

    middleware = Middleware(ObservedRequests, observe=seen.append, clock=FakeClock(), ids=lambda: "new")
    app = Starlette(
        routes=[Route("/discover", discover), Route("/mcp", bug)], middleware=[middleware, Middleware(FindPlace)]
    )
    client = TestClient(app, raise_server_exceptions=False)
    return seen, [client.request(method, path, headers=headers) for method, path, headers in requests]


def test_every_request_is_observed_with_its_status():
    seen, _ = answers_to(("GET", "/discover", {}), ("BREW", "/discover", {}), ("GET", "/mcp", {}), ("GET", "/x", {}))
    assert [(one.method, one.route, one.status) for one in seen] == [
        ("GET", "/discover", 201), (OTHER, "/discover", 405), ("GET", "/mcp", 500), ("GET", OTHER, 404),
    ]  # fmt: skip


@pytest.mark.parametrize(("sent", "id"), [
    ({}, "new"), ({"X-Request-Id": "abc-1.2:3_4"}, "abc-1.2:3_4"), ({"X-Request-Id": "a b"}, "new"),
    ({"X-Request-Id": "x" * 65}, "new"), ({"X-Request-Id": 'a"},{'}, "new"),
])  # fmt: skip
def test_the_id_of_a_request_is_the_callers_if_it_is_a_plain_word(sent, id):
    (seen,), (response,) = answers_to(("GET", "/discover", sent))
    assert seen.request_id == response.text == response.headers["X-Request-Id"] == id
