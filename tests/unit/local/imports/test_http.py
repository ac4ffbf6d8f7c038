"""Fetching: SSRF protection, limits and timeouts, TLS, redaction."""

import datetime
import gzip
import ipaddress
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import httpcore2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mats.client import bounded_http as http
from mats.client.bounded_http import fetch
from mats.domain.profile.sync import SourceKind, TrackedSource
from mats.domain.protocols.addresses import Unfetchable, redact, without_query
from mats.local.imports.importer import Importer
from mats.local.imports.sources import open_reading, open_sources
from mats.settings import Settings
from tests.fakes import MemoryRegistry
from tests.servers.raw_http import answering, drip, response
from tests.servers.site import site


@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        ("404 Not Found\r\nContent-Length: 0", b"", "status 404"),
        ("200 OK\r\nContent-Length: 100", b"{}", "truncated"),
        ("200 OK\r\nContent-Encoding: gzip", b"\x1f\x8b", "encoding"),
        ("200 OK", b"x" * 200_000, "more than"),
        ("200 OK\r\nTransfer-Encoding: chunked", b"zz\r\n", "cannot be read"),
        ("302 Found\r\nLocation: http://[fd00:ec2::254]/", b"", "which is blocked"),
        ("302 Found\r\nLocation: http://[::ffff:169.254.169.254]/", b"", "which is blocked"),
        ("nonsense", b"", "cannot be read"),
        ("200 OK\r\n" + "X: y\r\n" * 200, b"", "cannot be read"),
        ("200 OK\r\n" + "X: y" * 50_000, b"", "cannot be read"),
    ],
)
def test_bad_response_or_redirect_is_one_clear_fault(head, body, said):
    with answering(response(head, body)) as url, pytest.raises(Unfetchable, match=said):
        fetch(url, max_bytes=100_000, timeout_s=10)


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_endless_response_times_out(head):
    with answering(lambda connection: drip(connection, head)) as url, pytest.raises(Unfetchable, match=r"within 0\.5"):
        fetch(url, timeout_s=0.5)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/x", "file:///etc/passwd", "http://", "http://[", "http://a b/", "http://example.com:99999/",
        "http://user:secret@example.com/", "http://example.com/\r\nX: y", "https://exämple.com/",
    ],
)  # fmt: skip
def test_invalid_url_is_not_requested(url):
    with pytest.raises(Unfetchable) as raised:
        fetch(url)
    assert "secret" not in str(raised.value)


def resolve(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name lead to these."""
    found = [(0, 0, 0, "", (address, 80)) for address in addresses]
    monkeypatch.setattr(http.socket, "getaddrinfo", lambda *a, **k: found)


BLOCKED = (
    "169.254.169.254", "100.100.100.200", "fe80::1", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1", "0.0.0.0", "::", "224.0.0.1", "255.255.255.255",
)  # fmt: skip


@pytest.mark.parametrize(
    ("address", "said"), [*((each, "which is blocked") for each in BLOCKED), ("127.0.0.1", "this machine")]
)
def test_names_of_metadata_link_local_and_loopback_addresses_are_never_requested(address, said, monkeypatch):
    resolve(monkeypatch, address)
    with pytest.raises(Unfetchable, match=said):
        fetch("http://innocent.example/")


def refusing(heard: Callable[[str, float], None], error: type[Exception] = httpcore2.ConnectError) -> Any:
    """A `connect_tcp` that accepts no connection."""

    async def connect_tcp(self, host: str, port: int, timeout: float, *more: object) -> None:
        heard(host, timeout)
        raise error

    return connect_tcp


def test_translated_address_is_checked_as_the_one_it_stands_for(monkeypatch):
    reached: list[str] = []
    resolve(monkeypatch, "64:ff9b::5db8:d822")
    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", refusing(lambda host, timeout: reached.append(host)))
    with pytest.raises(Unfetchable, match="cannot be read"):
        fetch("http://public.example/")
    assert reached == ["64:ff9b::5db8:d822"]


def test_unreachable_addresses_share_the_timeout(monkeypatch):
    given: list[float] = []
    resolve(monkeypatch, *(f"8.8.8.{n}" for n in range(9)))
    silent = refusing(lambda host, timeout: given.append(timeout), httpcore2.ConnectTimeout)
    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", silent)
    with pytest.raises(Unfetchable, match="did not answer"):
        fetch("http://slow.example/", timeout_s=8)
    assert given == [2, 2, 2, 2]


def test_redacted_and_registered_urls_have_no_credentials_and_query():
    assert redact("https://user:pw@a.example:8443/x?token=1#y") == "https://a.example:8443/x"
    assert without_query("https://a.example:8443/X/mcp?api_key=1#y") == "https://a.example:8443/X/mcp"


def test_endpoint_is_registered_without_the_key_of_its_url():
    body = b"---\nname: a\ndescription: Does something.\n---\nDo it.\n"
    importer = Importer(MemoryRegistry())
    with answering(response(f"200 OK\r\nContent-Length: {len(body)}", body)) as url:
        importer.import_sources(open_sources(f"{url}/SKILL.md?token=s3cr3t", "com.acme"))
    (item,) = importer.registry.items.values()
    assert item["endpoint"] == f"{url}/SKILL.md"


def test_fetched_archive_is_decompressed_and_a_damaged_one_rejected():
    packed = gzip.compress(b'{"namespace": "n", "name": "a", "kind": "tool"}\n')
    for body, placed in ((packed, 1), (packed[:20], 0)):
        with answering(response(f"200 OK\r\nContent-Length: {len(body)}", body)) as url:
            importer = Importer(MemoryRegistry())
            importer.import_sources(open_sources(f"{url}/rows.jsonl.gz?token=secret"))
        assert len(importer.registry.items) == placed
        assert [bad.place.file for bad in importer.report.rejected] == [f"{url}/rows.jsonl.gz"] * (1 - placed)


def test_each_reading_of_a_source_checks_where_its_name_leads(monkeypatch):
    reached: list[str] = []
    answers = iter(["93.184.216.34", "169.254.169.254", "127.0.0.1", "10.0.0.7"])
    monkeypatch.setattr(http.socket, "getaddrinfo", lambda *a, **k: [(0, 0, 0, "", (next(answers), 80))])
    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", refusing(lambda host, timeout: reached.append(host)))
    problems = []
    for kind in (SourceKind.MCP_REGISTRY, SourceKind.ARD, SourceKind.DOCUMENT):
        importer = Importer(MemoryRegistry())
        reading = open_reading(TrackedSource(name="x", kind=kind, location=("http://rebinding.example/x",)), Settings())
        importer.import_sources(reading.sources)
        problems += [str(bad.faults[0]) for bad in importer.report.unreadable]
    assert reached == ["93.184.216.34"]
    assert "cannot be read" in problems[0]
    assert "169.254.169.254, which is blocked" in problems[1]
    assert "resolves to this machine" in problems[2]


CARD = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
    "name": "com.example/pay", "version": "1.0.0", "description": "Refunds card payments.",
    "remotes": [{"type": "streamable-http", "url": "https://pay.example.com/mcp"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("pages", "asked", "problem"),
    [
        ({"/pay/card.json": CARD}, "/pay/card.json", ""),
        ({"/pay/server-card": CARD}, "/pay", ""),
        ({"/.well-known/mcp/server-card.json": CARD}, "", ""),
        ({"/pay": {"a": 1}, "/pay/server-card": {"a": 1}}, "/pay", "is not an MCP server card"),
        ({}, "/pay", "status 404"),
    ],
)
def test_a_server_card_is_found_at_its_address_below_it_or_at_its_site(pages, asked, problem):
    with site(lambda request: pages.get(request.path, 404)) as url:
        importer = Importer(MemoryRegistry())
        source = TrackedSource(name="x", kind=SourceKind.MCP_CARD, location=(f"{url}{asked}",))
        importer.import_sources(open_reading(source, Settings()).sources)
    assert list(importer.registry.items) == ([] if problem else ["com.example/pay"])
    told = "; ".join(found.text for found in (*importer.report.rejected, *importer.report.noted))
    assert problem in told


def test_refused_connection_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Unfetchable, match="cannot be read: Connection refused; check the address"):
        fetch(f"http://127.0.0.1:{port}/")


def test_cookies_are_not_sent_on(monkeypatch):
    requests: list[bytes] = []

    def redirect(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 302 Found\r\nSet-Cookie: id=1\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")
        requests.append(connection.recv(65_536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with answering(redirect) as url, pytest.raises(Unfetchable, match="redirects more than"):
        fetch(url, timeout_s=5)
    assert not any(b"cookie" in request.lower() for request in requests)


@pytest.fixture
def certificate(tmp_path):
    """A certificate of its own authority, for other.example and 127.0.0.2."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "other.example")])
    names = [x509.DNSName("other.example"), x509.IPAddress(ipaddress.ip_address("127.0.0.2"))]
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin.replace(year=2100))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "certificate.pem"
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
    return file


@pytest.mark.parametrize(
    ("is_trusted", "host", "outcome"),
    [
        (True, "127.0.0.2", b"{}"),
        (True, "127.0.0.1", "Hostname|IP address|CERTIFICATE"),
        (False, "127.0.0.2", "CERTIFICATE"),
    ],
)
def test_certificate_must_be_trusted_and_of_the_host(certificate, monkeypatch, is_trusted, host, outcome):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate) if is_trusted else "/dev/null")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)

    def serve(server: socket.socket) -> None:
        connection, _ = server.accept()
        try:
            with context.wrap_socket(connection, server_side=True) as safe:
                safe.recv(65_536)
                safe.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        except OSError:
            return

    with socket.create_server((host, 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        url = f"https://{host}:{server.getsockname()[1]}/"
        if isinstance(outcome, bytes):
            assert fetch(url, timeout_s=10) == outcome
        else:
            with pytest.raises(Unfetchable, match=f"cannot be read over TLS.*({outcome}).*; its server may"):
                fetch(url, timeout_s=10)
