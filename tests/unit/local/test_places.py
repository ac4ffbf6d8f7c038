"""One spelling of each path: what routes a request and what decides who may send it see the same bytes."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import anyio
import pytest

from mats.edge.http import Request
from mats.edge.route import TokenScope
from mats.edge.routes import ROUTES, respond
from mats.local.access import Access
from mats.local.console import api
from mats.local.places import place_of
from mats.local.service import OTHER, application
from mats.local.tokens import Token, TokenBook, digest
from tests.world import an_application

ENDPOINTS = sorted({(route.method, route.path) for route in (*ROUTES, *api.ROUTES)})
PLACES = [*ENDPOINTS, ("GET", "/metrics"), ("GET", "/docs"), ("GET", "/")]
ABOVE_IDS = tuple({path.partition("{")[0] for _, path in ENDPOINTS if "{" in path})
SECRETS = {"": b"", **{scope: f"{scope}-".encode() * 8 for scope in TokenScope}}
INSERTED = [
    "%0a", "%0A", "%0d", "%0d%0a", "%00", "%09", "%20", "%85", "%e2%80%a8", "%2f", "%3f", "%23", "%5c", "/", "/.",
    "/..", ";", ";a=b", ".", "\\", "\n", "\r", " ",
]  # fmt: skip


def spellings(path: str) -> Iterator[str]:
    """Other spellings of a path; what stands for a parameter may hold anything, and stays."""
    fixed, parameter, _ = path.partition("{")
    rest = "com.acme/refund" if parameter else ""
    return (f"{other}{rest}" for other in respelled(fixed) if other != fixed and not other.startswith(ABOVE_IDS))


def respelled(text: str) -> Iterator[str]:
    for end in (i for i in range(1, len(text) + 1) if i == len(text) or text[i] == "/"):
        yield from (f"{text[:end]}{inserted}{text[end:]}" for inserted in INSERTED)
    for at, character in enumerate(text):
        instead = ("%2f", "%2F", "\\", "//", "/./", "/%2e/") if character == "/" else (character.upper(),)
        yield from (f"{text[:at]}{one}{text[at + 1 :]}" for one in (*instead, f"%{ord(character):02x}"))
    yield from (f"{before}{text}" for before in ("/", "/.", "/x/..", "http://127.0.0.1", "%2f", "//h"))
    yield text[1:]


async def receive(messages: Iterator[dict]) -> dict:
    return next(messages, {"type": "http.disconnect"})


def statuses(local, requests: list[tuple[str, str, str]]) -> list[int]:
    """Of requests, each with the scope of its token, to the service for a team; sent as a server passes them on."""
    tokens = [Token(scope, scope, digest(secret.decode())) for scope, secret in SECRETS.items() if scope]
    service = application(local, Access(frozenset(), TokenBook(Path("nowhere"), tokens)))
    answers: list[int] = []

    async def send(message: dict) -> None:
        if message["type"] == "http.response.start":
            answers.append(message["status"])

    async def send_all() -> None:
        for method, path, scope in requests:
            sent = path.encode("latin-1")
            headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
            headers += [(b"authorization", b"Bearer " + SECRETS[scope])] if scope else []
            asgi = {
                "type": "http", "method": method, "raw_path": sent, "path": unquote(path), "query_string": b"",
                "headers": headers, "scheme": "http", "http_version": "1.1", "server": ("127.0.0.1", 80),
            }  # fmt: skip
            body = iter([{"type": "http.request", "body": b"{}"}])
            await service(asgi, partial(receive, body), send)

    anyio.run(send_all)
    return answers


def test_another_spelling_of_a_path_is_nobodys_for_every_scope(local):
    sent = [(method, path, scope) for method, at in PLACES for path in spellings(at) for scope in SECRETS]
    assert len(sent) > 10_000
    wrong = [request for request, status in zip(sent, statuses(local, sent), strict=True) if status != 404]
    assert wrong == []


def test_the_spelling_of_the_routes_is_somebodys(local):
    """What the test above would not see: a service that answers 404 to everything."""
    sent = [(method, at, TokenScope.OPERATE) for method, at in PLACES if "{" not in at]
    found = statuses(local, sent)
    assert [request for request, status in zip(sent, found, strict=True) if status in (401, 403, 404, 405)] == []


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
def test_aws_dispatches_no_other_spelling(method, path):
    application = an_application()
    found = [one for one in spellings(path) if respond(application, Request(method=method, path=one)).status != 404]
    assert found == []


@pytest.mark.parametrize(("path", "template"), [
    ("/discover", "/discover"),
    ("/capabilities", "/capabilities"),
    ("/capabilities/com.acme/refund", "/capabilities/{id}"),
    ("/capabilities/com.acme%2Frefund%0a", "/capabilities/{id}"),
    ("/capabilities/com.acme/refund/instructions", "/capabilities/{id}/instructions"),
    ("/registry", "/registry"),
    ("/registry/capabilities/com.acme/refund", "/registry/capabilities/{id}"),
    ("/registry/trust", "/registry/trust"),
    ("/registry/x", OTHER),
    ("/registry/", OTHER),
    ("/console/main.js", "/console/{file}"),
    ("/console/%6dain.js", OTHER),
    ("/console/", OTHER),
    ("/metrics", "/metrics"),
    ("/mcp", "/mcp"),
    ("/wp-login.php", OTHER),
    ("", OTHER),
])  # fmt: skip
def test_a_path_has_the_template_of_its_endpoint(path, template):
    place = place_of(path)
    assert (place.template if place else OTHER) == template
