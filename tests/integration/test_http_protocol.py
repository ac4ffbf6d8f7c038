"""Limits of a connection, over real sockets: time, number, bytes of the head, and one length for a body."""

import json
import resource
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
import uvicorn

from mats.local.http_protocol import MAX_HEAD_BYTES, BoundedProtocol, Capacity
from tests.integration.conftest import Mats, serving

HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n"
BODY = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"
SMUGGLED = (
    b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
)
LARGE = b"x" * 50_000_000

Connect = Callable[..., socket.socket]


class Busy:
    """An app that reads the body; it answers `/wait` once it is told to, and `/large` with 50 MB."""

    def __init__(self) -> None:
        self.begun, self.end = threading.Semaphore(0), threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        import anyio.to_thread

        message = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
        if scope["path"] == "/wait":
            self.begun.release()
            await anyio.to_thread.run_sync(self.end.wait)
        body = LARGE if scope["path"] == "/large" else b"done"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def app() -> Busy:
    return Busy()


@pytest.fixture
def patience() -> float:
    return 0.5


@pytest.fixture
def connect(app: Busy, patience: float) -> Iterator[Connect]:
    """Serves with a limit of four connections; connects, and sends what is given."""

    class Impatient(BoundedProtocol):
        most_connections = 4
        patience_s = patience

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=Impatient, ws="none", lifespan="off", log_config=None, timeout_keep_alive=60)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    opened: list[socket.socket] = []

    def connect(sent: bytes = b"") -> socket.socket:
        opened.append(socket.create_connection(listener.getsockname(), timeout=20))
        opened[-1].sendall(sent)
        return opened[-1]

    yield connect
    app.end.set()
    for one in opened:
        one.close()
    server.should_exit = True
    thread.join(20)


def read(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    read = b""
    while more := connection.recv(65_536):
        read += more
    return read


def problem_in(answer: bytes) -> tuple[int, str]:
    """The status and the detail of the only answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    document = json.loads(body)
    assert b"connection: close" in head.lower()
    assert head.split()[1] == str(document["status"]).encode()
    return document["status"], document["detail"]


@pytest.mark.parametrize("begun", [HEAD, BODY, BODY + b"abc"], ids=["head", "no body", "half a body"])
def test_a_request_that_does_not_end_is_refused(connect: Connect, begun: bytes):
    status, detail = problem_in(read(connect(begun)))
    assert status == 408
    assert "not complete after 0.5 seconds" in detail


def test_silence_ends(connect: Connect):
    assert read(connect()) == b""


def test_a_later_request_has_the_deadline_too(connect: Connect):
    connection = connect(HEAD + b"\r\n")
    while b"done" not in connection.recv(65_536):
        pass
    connection.sendall(HEAD)
    assert problem_in(read(connection))[0] == 408


def test_bytes_that_drip_do_not_prolong_the_deadline(connect: Connect):
    connection = connect(HEAD)
    connection.settimeout(0.02)
    answer = b""
    while not answer:
        connection.sendall(b"X: y\r\n")
        try:
            answer = connection.recv(65_536)
        except TimeoutError:
            continue
    assert answer.startswith(b"HTTP/1.1 408")


def test_an_answer_that_takes_long_is_not_hurried(connect: Connect, app: Busy):
    slow, other = connect(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"), connect()
    assert app.begun.acquire(timeout=20)
    assert read(other) == b""  # its deadline is later
    app.end.set()
    assert slow.recv(65_536).startswith(b"HTTP/1.1 200")


def test_an_answer_that_nobody_reads_ends(connect: Connect):
    connection = connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
    silent = connect()
    assert read(silent) == b""
    assert read(connect()) == b""
    with suppress(ConnectionError):
        assert len(read(connection)) < len(LARGE)


@pytest.mark.parametrize("patience", [60.0])
def test_the_connection_that_waits_longest_makes_room(connect: Connect):
    oldest = connect()
    others = [connect() for _ in range(3)]
    assert connect(HEAD + b"\r\n").recv(65_536).startswith(b"HTTP/1.1 200")
    assert read(oldest) == b""
    others[0].sendall(HEAD + b"\r\n")
    assert others[0].recv(65_536).startswith(b"HTTP/1.1 200")


def test_requests_that_are_being_answered_keep_their_connections(connect: Connect, app: Busy):
    answered = [connect(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(4)]
    for _ in answered:
        assert app.begun.acquire(timeout=20)
    status, detail = problem_in(read(connect()))
    assert (status, detail) == (503, "too many connections: try again")
    app.end.set()
    assert all(one.recv(65_536).startswith(b"HTTP/1.1 200") for one in answered)


FIELD = b"X-%06d: y\r\n"
LINE = len(FIELD % 0)


@pytest.mark.parametrize(
    "head",
    [
        HEAD + b"".join(FIELD % n for n in range(10_000)) + b"\r\n",
        HEAD + b"X: " + b"y" * MAX_HEAD_BYTES + b"\r\n\r\n",
        b"GET /" + b"y" * MAX_HEAD_BYTES + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        HEAD + b"X: " + b"y" * 2 * MAX_HEAD_BYTES,
    ],
    ids=["names", "value", "target", "without an end"],
)
def test_a_large_head_is_refused(connect: Connect, head: bytes):
    status, detail = problem_in(read(connect(head)))
    assert status == 431
    assert "32,768 bytes" in detail


@pytest.mark.parametrize("patience", [60.0])
def test_a_head_within_the_limit_is_read(connect: Connect):
    fields = b"".join(FIELD % n for n in range((MAX_HEAD_BYTES - 100) // LINE))
    assert connect(HEAD + fields + b"\r\n").recv(65_536).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("method", [b"POST", b"HEAD"])
def test_a_body_with_two_lengths_is_refused_and_what_follows_is_not_read(connect: Connect, method: bytes):
    answer = read(connect(SMUGGLED.replace(b"POST", method)))
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1
    if method == b"POST":
        assert "exclude each other" in problem_in(answer)[1]


@pytest.mark.parametrize("sent", [b"\x00\xff\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"], ids=["no HTTP", "no host"])
def test_what_is_no_request_is_a_problem(connect: Connect, sent: bytes):
    status, detail = problem_in(read(connect(sent)))
    assert status == 400
    assert detail.startswith("not a valid HTTP request: ")


@pytest.mark.parametrize(("files", "capacity"), [(256, (128, 64)), (1_024, (512, 256)), (20_000, (1_000, 2_048))])
def test_connections_leave_half_of_the_open_files(files: int, capacity: Sequence[int], monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (files, files))
    assert Capacity.of_process() == tuple(capacity)


def test_the_service_has_these_limits(mats: Mats):
    with serving(mats) as service:
        host, port = service.url.removeprefix("http://").split(":")
        for sent, status in ((SMUGGLED, 400), (HEAD + b"X: " + b"y" * MAX_HEAD_BYTES + b"\r\n\r\n", 431)):
            with socket.create_connection((host, int(port)), timeout=20) as connection:
                connection.sendall(sent)
                assert problem_in(read(connection))[0] == status
