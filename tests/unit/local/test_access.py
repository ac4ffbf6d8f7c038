"""Who may use the service: tokens, host names, and the options that set them."""

import stat
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import anyio
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.responses import Response

from mats.domain.errors import DependencyFailed, NotPossible, StorageUnusable
from mats.edge.route import TokenScope
from mats.edge.routes import ROUTES
from mats.local.access import Access, TokenGuard, header_fields, origin_problem, registry_problem
from mats.local.cli.serve import access_to, is_loopback
from mats.local.console import api
from mats.local.places import FindPlace, place_of
from mats.local.tokens import OWN, Token, TokenBook, digest, own_token
from mats.settings import Settings

READ = "r" * 32
SCOPES = list(TokenScope)
SECRETS = {scope: f"{scope}-" * 8 for scope in SCOPES}
TOKENS = TokenBook(
    Path("nowhere"), [Token(scope, scope, digest(secret), "2026-01-01") for scope, secret in SECRETS.items()]
)
SHARED = Access(frozenset({"mats.example.com"}), TOKENS)
ANSWER = Response(status_code=204)
OPEN = [
    "/", "/docs", "/healthz", "/openapi.json", "/console/main.js", "/static/docs.js",
    "/docs/assets/swagger-ui.css",
]  # fmt: skip
OPERATE = [f"/registry/{name}" for name in ("trust", "review", "lessons")]
EVERY_ROUTE = sorted({(route.method, route.path) for route in (*ROUTES, *api.ROUTES)})


def needed(method: str, path: str) -> TokenScope | None:
    """The table of security.md."""
    if path in OPEN:
        return None
    if path.startswith("/registry"):
        return TokenScope.OPERATE if method == "POST" and path in OPERATE else TokenScope.WRITE
    return TokenScope.REPORT if path == "/feedback" else TokenScope.READ


def sent(
    method: str,
    path: str,
    *authorization: str,
    tokens: TokenBook = TOKENS,
    own: Path | None = None,
    app: Callable = ANSWER,
    more: Iterable[bool] = repeat(False),
) -> tuple[int, dict[str, str], str]:
    """The status, headers and body of a request to a guarded application.

    `more`: for each part of the body, whether another follows.
    """
    parts = iter(more)
    answer: list[dict] = []
    headers = [(b"authorization", value.encode("latin-1")) for value in authorization]

    async def send(message: dict) -> None:
        answer.append(message)

    async def receive() -> dict:
        return {"type": "http.request", "more_body": next(parts)}

    guard = FindPlace(TokenGuard(app, Access(tokens=tokens, own=own)))
    anyio.run(guard, {"type": "http", "method": method, "path": path, "headers": headers}, receive, send)
    named = {name.decode(): value.decode() for name, value in answer[0]["headers"]}
    return answer[0]["status"], named, answer[1]["body"].decode()


def status_of(method: str, path: str, *authorization: str) -> int:
    return sent(method, path, *authorization)[0]


def test_a_token_that_is_revoked_while_a_body_arrives_does_nothing(tmp_path):
    book = TokenBook(tmp_path)
    secret = book.add("agent", TokenScope.WRITE, "2026-01-01")

    async def app(scope: dict, receive: Callable, send: Callable) -> None:
        while (await receive())["more_body"]:
            book.revoke("agent")
        await ANSWER(scope, receive, send)

    request = ("POST", "/registry/capabilities", f"Bearer {secret}")
    assert sent(*request, tokens=book, app=app, more=[True, False])[0] == 401


@pytest.mark.parametrize(("method", "path"), EVERY_ROUTE)
def test_every_route_asks_for_its_scope_or_a_higher_one(method, path):
    scope = needed(method, path)
    at = path.replace("{id+}", "com.acme/a").replace("{identifier+}", "urn:air:a:b")
    assert status_of(method, at) == (401 if scope else 204)
    for having, secret in SECRETS.items():
        allowed = scope is None or SCOPES.index(having) >= SCOPES.index(scope)
        assert status_of(method, at, f"bearer {secret}") == (204 if allowed else 403)


@pytest.mark.parametrize(("method", "path", "scope"), [
    ("HEAD", "/registry/trust", "write"), ("PUT", "/registry/trust", "operate"), ("post", "/registry/trust", "operate"),
    ("PATCH", "/registry/capabilities/a/b/c", "write"), ("POST", "/registry/capabilities/a", "operate"),
    ("GET", "/feedback", "report"), ("GET", "/metrics", "read"), ("POST", "/metrics", "read"),
])  # fmt: skip
def test_other_methods_need_no_less(method, path, scope):
    assert place_of(path).scope_needed(method) == scope


@given(st.text())
def test_any_other_path_is_nobodys(path):
    assert status_of("GET", path) == (204 if path in OPEN else 404)


@pytest.mark.parametrize(
    "authorization",
    [
        (), ("",), ("Bearer",), ("Bearer ",), (f"Bearer {READ}",), (f"Basic {SECRETS[TokenScope.OPERATE]}",),
        (SECRETS[TokenScope.OPERATE],), (f"Bearer {SECRETS[TokenScope.OPERATE]}",) * 2,
        (f"Bearer {SECRETS[TokenScope.OPERATE][:-1]}",), (f"Bearer {digest(SECRETS[TokenScope.OPERATE])}",),
        (f"Bearer {SECRETS[TokenScope.READ]} {SECRETS[TokenScope.READ]}",), ("Bearer \xff",),
    ],
)  # fmt: skip
def test_anything_else_is_no_token(authorization):
    status, headers, body = sent("POST", "/discover", *authorization)
    assert status == 401
    assert headers["www-authenticate"].startswith('Bearer realm="mats"')
    assert SECRETS[TokenScope.READ] not in body


def test_a_token_is_compared_with_every_other_in_constant_time(monkeypatch):
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: compared.append(a) or a == b)
    assert TOKENS.find(SECRETS[TokenScope.READ]).name == "read"
    assert len(compared) == len(SECRETS)


def test_tokens_are_in_no_representation():
    settings = Settings(token=READ)
    for shown in (repr(TOKENS), repr(SHARED), repr(settings), *map(repr, TOKENS.all())):
        assert READ not in shown
        assert digest(SECRETS[TokenScope.READ]) not in shown


def test_a_named_token_is_made_found_and_revoked(tmp_path):
    book, other = TokenBook(tmp_path), TokenBook(tmp_path)
    secret = book.add("ci", TokenScope.WRITE, "2026-01-01")
    assert (other.find(secret).scope, other.find(secret).caller) == (TokenScope.WRITE, "token:ci")
    assert other.find(digest(secret)) is None
    stored = (tmp_path / "mats.tokens").read_text()
    assert secret not in stored
    assert stat.S_IMODE((tmp_path / "mats.tokens").stat().st_mode) == 0o600
    with pytest.raises(NotPossible, match="revoke it first"):
        other.add("ci", TokenScope.READ, "2026-01-01")
    assert other.add("agent", TokenScope.READ, "2026-01-01") != secret
    other.revoke("ci")
    assert book.find(secret) is None
    assert [token.name for token in book.all()] == ["agent"]
    with pytest.raises(NotPossible, match="mats token list"):
        book.revoke("ci")


def attempt(make: Callable[[], str]) -> str:
    """The token that `make` returns; empty while another thread writes the file."""
    try:
        return make()
    except DependencyFailed:
        return ""


def test_tokens_that_are_made_at_once_are_all_kept_or_refused(tmp_path):
    def add(number: int) -> str:
        return attempt(lambda: TokenBook(tmp_path).add(f"t{number}", TokenScope.READ, "2026-01-01"))

    with ThreadPoolExecutor(8) as threads:
        made = [secret for secret in threads.map(add, range(24)) if secret]
    assert made
    assert len(TokenBook(tmp_path).all()) == len(made)
    assert all(map(TokenBook(tmp_path).find, made))


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'[{"name": "a"}]', b'[{"name": "a", "scope": "root"}]',
    b"\xff", b'[{"name": "a", "scope": "operate", "digest": "x", "more": 1}]', b'["a"]', b"{}",
    b"[" * 100_000,
    b'[{"name": "a", "scope": "read", "digest": null}]', b'[{"name": 1, "scope": "read", "digest": "x"}]'])  # fmt: skip
def test_with_a_damaged_file_nobody_has_a_token(tmp_path, content):
    book = TokenBook(tmp_path)
    secret = book.add("ci", TokenScope.WRITE, "2026-01-01")
    (tmp_path / "mats.tokens").write_bytes(content)
    status, _, body = sent("GET", "/registry", f"Bearer {secret}", tokens=book)
    assert (status, str(tmp_path) in body) == (503, False)
    with pytest.raises(StorageUnusable, match="make the tokens again"):
        book.add("other", TokenScope.READ, "2026-01-01")
    (tmp_path / "mats.tokens").unlink()
    assert sent("GET", "/registry", f"Bearer {secret}", tokens=book)[0] == 401


@pytest.mark.parametrize(("method", "path"), EVERY_ROUTE)
def test_on_this_machine_only_a_change_asks_for_a_token(tmp_path, method, path):
    own = own_token(tmp_path)
    book = TokenBook(tmp_path, [Token("operator", TokenScope.OPERATE, digest(own))])
    at = path.replace("{id+}", "com.acme/a").replace("{identifier+}", "urn:air:a:b")
    changes = path.startswith("/registry") and method != "GET"
    for sending, status in (((), 401), (("Bearer x",), 401), ((f"Bearer {own}",), 204)):
        answer, _, body = sent(method, at, *sending, tokens=book, own=tmp_path / OWN)
        assert answer == (status if changes else 204)
        assert (str(tmp_path / OWN) in body) == (answer == 401)
    secret = book.add("ci", TokenScope.WRITE, "2026-01-01")
    assert sent("POST", "/registry/trust", f"Bearer {secret}", tokens=book, own=tmp_path / OWN)[0] == 403


def test_the_token_of_this_machine_is_made_once_and_is_private(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        made = set(threads.map(lambda _: attempt(lambda: own_token(tmp_path)), range(24))) - {""}
    assert made == {own_token(tmp_path)}
    assert len(made.pop()) >= 32
    assert stat.S_IMODE((tmp_path / OWN).stat().st_mode) == 0o600
    for content in (b"", b"short", b"\xff" * 40):
        (tmp_path / OWN).write_bytes(content)
        with pytest.raises(StorageUnusable):
            own_token(tmp_path)


@pytest.mark.parametrize(("host", "alone", "shared"), [
    ("127.0.0.1", True, True), ("127.0.0.1:1", True, True), ("LOCALHOST:8080", True, True), ("[::1]", True, True),
    ("[::1]:8080", True, True), ("mats.example.com", False, True), ("MATS.example.com:8443", False, True),
    ("192.168.1.5:8080", False, True), ("[fd00::1]:8080", False, True), ("127.0.0.2", False, True),
    ("fd00::1", False, False), ("::1", False, False), ("[::1", False, False), ("", False, False),
    (":8080", False, False), ("localhost.", False, False), ("localhost:x", False, False),
    ("localhost:8080@evil.example", False, False), ("127.0.0.1.evil.example", False, False),
    ("mats.example.com.evil.example", False, False), ("mats.example.com:x", False, False),
])  # fmt: skip
def test_a_service_answers_to_its_names_alone_and_shared_to_addresses_too(host, alone, shared):
    assert (Access().knows(host), SHARED.knows(host)) == (alone, shared)


@pytest.mark.parametrize(("headers", "alone", "shared"), [
    ({}, None, None),
    ({"origin": "http://localhost:8080"}, None, None),
    ({"origin": "https://localhost:8080"}, 403, None),
    ({"origin": "http://localhost:8081"}, 403, 403),
    ({"origin": "http://127.0.0.1:8080"}, 403, 403),
    ({"origin": "null"}, 403, 403),
    ({"origin": ""}, 403, 403),
    ({"sec-fetch-site": "same-origin"}, None, None),
    ({"sec-fetch-site": "none"}, None, None),
    ({"sec-fetch-site": "same-site"}, 403, 403),
    ({"sec-fetch-site": "cross-site"}, 403, 403),
    ({"host": "evil.example"}, 403, 403),
])  # fmt: skip
def test_requests_of_other_origins_and_sites_are_rejected(headers, alone, shared):
    sent = Headers({"host": "localhost:8080", **headers})
    for access, status in ((Access(), alone), (SHARED, shared)):
        problem = origin_problem("http", sent, access)
        assert (problem and problem.status) == status


def test_a_request_with_no_host_or_several_is_rejected():
    for raw in ([], [(b"host", b"127.0.0.1"), (b"host", b"evil.example")]):
        assert origin_problem("http", Headers(raw=raw)) is not None


@pytest.mark.parametrize(("content_type", "status"), [
    ("application/json", None), ("Application/JSON; charset=utf-8", None), ("", 415), ("text/plain", 415),
    ("application/x-www-form-urlencoded", 415), ("text/plain; application/json", 415), ("application/json-x", 415),
])  # fmt: skip
def test_content_types_that_a_plain_form_can_send_are_rejected(content_type, status):
    headers = Headers({"host": "127.0.0.1", "content-type": content_type})
    for method, refused in (("PUT", status), ("POST", status), ("GET", None)):
        problem = registry_problem(method, "http", headers)
        assert (problem and problem.status) == refused


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "LOCALHOST"])
def test_loopback_needs_no_token_and_no_names(host, tmp_path):
    assert is_loopback(host)
    assert access_to(host, home=tmp_path, allowed=()) == Access()
    with pytest.raises(typer.BadParameter, match="mats token add"):
        access_to(host, home=tmp_path, allowed=["mats.example.com"])


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "mats.example.com", "", "127.0.0.1.evil.example", "127.1"]
)
def test_other_addresses_need_a_token(host, tmp_path):
    with pytest.raises(typer.BadParameter, match="mats token add"):
        access_to(host, home=tmp_path, allowed=())
    secret = TokenBook(tmp_path).add("ci", TokenScope.WRITE, "2026-01-01")
    found = access_to(host, home=tmp_path, allowed=["Mats.Example.com."])
    assert found.tokens.find(secret).name == "ci"
    assert found.knows("mats.example.com")
    for name in ("https://mats.example.com", "mats.example.com:443", "", "a b"):
        with pytest.raises(typer.BadParameter, match="no host name"):
            access_to(host, home=tmp_path, allowed=[name])


class _NotLookedUp(Headers):
    def __getitem__(self, key: str) -> str:
        raise AssertionError("each look-up reads all headers: 10,000 headers took 7 s")


def test_headers_are_read_in_one_pass():
    headers = _NotLookedUp(raw=[(b"host", b"a"), (b"accept", b"one"), (b"accept", b"two")])
    assert header_fields(headers) == {"host": "a", "accept": "one"}
