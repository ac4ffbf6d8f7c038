"""Who may use the service: tokens, host names, and the options that set them."""

from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from mats.edge.routes import ROUTES
from mats.local.access import Access, Tokens, digest, header_fields, origin_problem, registry_problem
from mats.local.cli.serve import access_to, is_loopback
from mats.settings import Settings

READ, WRITE = "r" * 32, "w" * 40
TOKENS = Tokens(digest(READ), digest(WRITE))
SHARED = Access(frozenset({"mats.example.com"}), TOKENS)
OPEN = [
    "/", "/docs", "/healthz", "/openapi.json", "/console/main.js", "/evaluation/scale.svg", "/static/docs.js",
    "/docs/assets/swagger-ui.css",
]  # fmt: skip


def status_of(path: str, *authorization: str) -> int | None:
    problem = TOKENS.problem(path, authorization)
    return problem and problem.status


@pytest.mark.parametrize(
    ("path", "statuses"),
    [
        *((path, (None, None, None)) for path in OPEN),
        *((path, (401, None, None)) for path in sorted({route.path for route in ROUTES} - {*OPEN})),
        *((f"/registry{below}", (401, 403, None)) for below in ("", "/capabilities/a/b", "/", "/x")),
    ],
)
def test_files_need_no_token_endpoints_one_and_the_registry_that_for_writing(path, statuses):
    assert (status_of(path), status_of(path, f"Bearer {READ}"), status_of(path, f"bearer {WRITE}")) == statuses


@given(st.text())
def test_any_other_path_needs_a_token(path):
    below = ("/console/", "/evaluation/", "/docs/assets/", "/static/")
    assert (status_of(path) is None) == (path in OPEN or path.startswith(below))


@pytest.mark.parametrize(
    "authorization",
    [
        (), ("",), ("Bearer",), ("Bearer ",), (f"Bearer {READ}x",), (f"Bearer {READ[:-1]}",), (f"Basic {READ}",),
        (READ,), (f"Bearer {READ}", f"Bearer {READ}"), (f"Bearer {READ} {READ}",), ("Bearer \xff",),
    ],
)  # fmt: skip
def test_anything_else_is_no_token(authorization):
    problem = TOKENS.problem("/discover", authorization)
    assert problem is not None
    assert problem.status == 401
    assert problem.headers["WWW-Authenticate"].startswith('Bearer realm="mats"')
    assert READ not in problem.body


def test_tokens_are_in_no_representation():
    for shown in (repr(TOKENS), repr(SHARED), repr(Settings(read_token=READ, write_token=WRITE))):
        assert READ not in shown
        assert WRITE not in shown
        assert repr(digest(READ)) not in shown


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
def test_loopback_needs_no_token_and_no_names(host):
    assert is_loopback(host)
    assert access_to(host, settings=Settings(), allowed=(), read_file=None, write_file=None) == Access()
    with pytest.raises(typer.BadParameter, match="MATS_READ_TOKEN"):
        access_to(host, settings=Settings(), allowed=["mats.example.com"], read_file=None, write_file=None)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "mats.example.com", "", "127.0.0.1.evil.example", "127.1"]
)
def test_other_addresses_need_both_tokens(host):
    for settings in (Settings(), Settings(read_token=READ), Settings(write_token=WRITE)):
        with pytest.raises(typer.BadParameter, match="MATS_READ_TOKEN and MATS_WRITE_TOKEN"):
            access_to(host, settings=settings, allowed=(), read_file=None, write_file=None)
    both = Settings(read_token=READ, write_token=WRITE)
    access = access_to(host, settings=both, allowed=["Mats.Example.com."], read_file=None, write_file=None)
    assert access.tokens == TOKENS
    assert access.knows("mats.example.com")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (Settings(read_token=READ, write_token=READ), "same"),
        (Settings(read_token=READ[1:], write_token=WRITE), "at least 32"),
        (Settings(read_token=READ + " x", write_token=WRITE), "letters"),
        (Settings(read_token=READ, write_token="ü" * 40), "letters"),
    ],
)
def test_unusable_tokens_are_refused_without_repeating_them(settings, problem):
    with pytest.raises(typer.BadParameter, match=problem) as refused:
        access_to("127.0.0.1", settings=settings, allowed=(), read_file=None, write_file=None)
    assert not any(token in str(refused.value) for token in (settings.read_token, settings.write_token))


def test_tokens_may_be_in_files(tmp_path: Path):
    read, write = tmp_path / "read", tmp_path / "write"
    read.write_text(f"{READ}\n")
    write.write_text(f"{WRITE}\r\n")
    access = access_to("0.0.0.0", settings=Settings(), allowed=(), read_file=read, write_file=write)
    assert access.tokens == TOKENS
    for settings, file in ((Settings(read_token=READ), read), (Settings(), tmp_path / "none"), (Settings(), tmp_path)):
        with pytest.raises(typer.BadParameter):
            access_to("0.0.0.0", settings=settings, allowed=(), read_file=file, write_file=write)
    read.write_text("")
    with pytest.raises(typer.BadParameter, match="at least 32"):
        access_to("0.0.0.0", settings=Settings(), allowed=(), read_file=read, write_file=write)


@pytest.mark.parametrize("name", ["https://mats.example.com", "mats.example.com:443", "", "a b"])
def test_allowed_hosts_are_names(name):
    settings = Settings(read_token=READ, write_token=WRITE)
    with pytest.raises(typer.BadParameter, match="no host name"):
        access_to("127.0.0.1", settings=settings, allowed=[name], read_file=None, write_file=None)


class _NotLookedUp(Headers):
    def __getitem__(self, key: str) -> str:
        raise AssertionError("each look-up reads all headers: 10,000 headers took 7 s")


def test_headers_are_read_in_one_pass():
    headers = _NotLookedUp(raw=[(b"host", b"a"), (b"accept", b"one"), (b"accept", b"two")])
    assert header_fields(headers) == {"host": "a", "accept": "one"}
