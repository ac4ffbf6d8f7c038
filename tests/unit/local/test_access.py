"""Who may use the service: tokens, host names, and the options that set them."""

from dataclasses import replace
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from mats.edge.routes import ROUTES
from mats.local.access import Access, Tokens, digest, header_fields, origin_problem
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


@pytest.mark.parametrize("path", OPEN)
def test_files_and_state_need_no_token(path):
    assert status_of(path) is None


@pytest.mark.parametrize("path", sorted({route.path for route in ROUTES} - {*OPEN}))
def test_every_endpoint_needs_a_token(path):
    assert status_of(path) == 401
    assert status_of(path, f"Bearer {READ}") is None
    assert status_of(path, f"Bearer {WRITE}") is None


@pytest.mark.parametrize("path", ["/registry", "/registry/capabilities/a/b", "/registry/", "/registry/x"])
def test_the_registry_needs_the_write_token(path):
    assert status_of(path) == 401
    assert status_of(path, f"Bearer {READ}") == 403
    assert status_of(path, f"Bearer {WRITE}") is None


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


def test_the_scheme_is_case_insensitive():
    assert status_of("/discover", f"bearer {READ}") is None


def test_tokens_are_in_no_representation():
    for shown in (repr(TOKENS), repr(SHARED), repr(Settings(read_token=READ, write_token=WRITE))):
        assert READ not in shown
        assert WRITE not in shown
        assert repr(digest(READ)) not in shown


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("mats.example.com", True),
        ("MATS.example.com:8443", True),
        ("localhost:8080", True),
        ("192.168.1.5:8080", True),
        ("[fd00::1]:8080", True),
        ("fd00::1", False),
        ("evil.example", False),
        ("mats.example.com.evil.example", False),
        ("192.168.1.5.evil.example", False),
        ("mats.example.com:x", False),
        ("", False),
    ],
)
def test_a_shared_service_answers_to_its_names_and_to_addresses(host, known):
    assert SHARED.knows(host) is known
    assert replace(SHARED, tokens=None, hosts=frozenset()).knows(host) is (host == "localhost:8080")


@pytest.mark.parametrize(
    ("origin", "accepted"),
    [
        ("https://mats.example.com", True),
        ("http://mats.example.com", True),
        ("https://mats.example.com:444", False),
        ("https://evil.example", False),
        ("null", False),
    ],
)
def test_a_shared_service_accepts_its_own_pages_behind_a_proxy(origin, accepted):
    headers = Headers({"host": "mats.example.com", "origin": origin})
    assert (origin_problem("http", headers, SHARED) is None) is accepted


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost", "LOCALHOST"])
def test_loopback_needs_no_token(host):
    assert is_loopback(host)
    access = access_to(host, settings=Settings(), allowed=(), read_file=None, write_file=None)
    assert access == Access()


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


def test_allowed_hosts_need_tokens():
    with pytest.raises(typer.BadParameter, match="MATS_READ_TOKEN"):
        access_to("127.0.0.1", settings=Settings(), allowed=["mats.example.com"], read_file=None, write_file=None)


class _NotLookedUp(Headers):
    def __getitem__(self, key: str) -> str:
        raise AssertionError("each look-up reads all headers: 10,000 headers took 7 s")


def test_headers_are_read_in_one_pass():
    headers = _NotLookedUp(raw=[(b"host", b"a"), (b"accept", b"one"), (b"accept", b"two")])
    assert header_fields(headers) == {"host": "a", "accept": "one"}
