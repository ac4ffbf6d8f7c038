"""After a pause, no request goes over a connection that the other side may have given up."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mats import bootstrap
from mats.adapters import connections
from mats.adapters.bedrock import factory
from mats.adapters.bedrock.client import BedrockClient
from mats.adapters.connections import IDLE_S, Moment
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.llm import Meter
from mats.adapters.opensearch.domain import Domain
from mats.bootstrap.models import BATCH_BUDGETS
from mats.domain.prompts.usage import Prices
from mats.domain.ranking.query import Filter
from mats.settings import Settings
from tests.aws.tables import credentials

REPLY = json.dumps({
    "hits": {"total": {"value": 0}, "hits": []}, "aggregations": {"0000": {"doc_count": 0}, "0001": {"doc_count": 0}},
    "Item": {}, "embedding": [1.0], "inputTextTokenCount": 1,
}).encode()  # fmt: skip
TIMEOUT_S = 2.0


class Forgetful(ThreadingHTTPServer):
    """Answers the first requests of each connection; later ones are lost, as behind a device that forgot it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = 1
        self.accepted = 0
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def process_request(self, request: Any, client_address: Any) -> None:
        self.accepted += 1
        super().process_request(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Forgetful

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.answered = getattr(self, "answered", 0) + 1
        if self.answered > self.server.answers:
            self.server.ended.wait()  # the client hears nothing any more
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(REPLY)))
        self.end_headers()
        self.wfile.write(REPLY)

    def do_GET(self) -> None:
        self.do_POST()


@pytest.fixture
def server() -> Iterator[Forgetful]:
    with Forgetful() as server:
        loop = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        loop.start()
        yield server
        server.ended.set()
        server.shutdown()


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets both clocks of the pools advance, or one of them."""
    moment = [Moment(0.0, 0.0)]
    monkeypatch.setattr(connections.Moment, "now", lambda: moment[0])

    def advance(seconds: float, *, wall_s: float | None = None) -> None:
        before = moment[0]
        moment[0] = Moment(before.monotonic_s + seconds, before.wall_s + (seconds if wall_s is None else wall_s))

    return advance


Call = Callable[[], Any]


@pytest.fixture(params=["bedrock", "dynamodb", "opensearch"])
def call(request: pytest.FixtureRequest, server: Forgetful, monkeypatch: pytest.MonkeyPatch) -> Call:
    """A call of each client, with one attempt."""
    credentials(monkeypatch, bedrock_runtime=server.url, dynamodb=server.url)
    if request.param == "bedrock":
        client = BedrockClient(Meter(Prices({})), timeout_s=TIMEOUT_S)
        return lambda: client.invoke("titan", {"inputText": "x"})
    if request.param == "dynamodb":
        tables = Tables(timeout_s=TIMEOUT_S, attempts=1)
        return lambda: tables.ask("t", "get_item", Key={"name": {"S": "models"}})
    domain = Domain(server.url, read_s=TIMEOUT_S)
    return lambda: domain.search(dict, "capabilities", {"query": {"match_all": {}}})


@pytest.mark.parametrize("monotonic_s", [IDLE_S + 1, 0.0], ids=["both clocks", "the wall clock alone"])
def test_a_connection_that_was_idle_too_long_is_replaced(server: Forgetful, pause, call: Call, monotonic_s: float):
    call()
    pause(monotonic_s, wall_s=IDLE_S + 1)
    call()
    assert server.accepted == 2


def test_connections_are_reused_in_between(server: Forgetful, pause, call: Call):
    server.answers = 3
    for _ in range(3):
        call()
        pause(IDLE_S - 1)
    assert server.accepted == 1


def test_a_connection_that_the_server_closed_is_replaced(server: Forgetful, pause, call: Call, monkeypatch):
    monkeypatch.setattr(_Handler, "protocol_version", "HTTP/1.0")
    for _ in range(3):
        call()
    assert server.accepted == 3


def test_connections_have_keepalive(server: Forgetful, monkeypatch: pytest.MonkeyPatch, call: Call):
    made: list[socket.socket] = []
    create = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        made.append(self)
        create(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    call()
    assert [one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) for one in made] == [1]
    assert [one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for one in made] == [1]


def test_after_a_restore_the_first_answer_finds_every_connection_open(server: Forgetful, monkeypatch):
    server.answers = 100
    for name in ("system._OPEN_S", "cloud._ONLINE_TIMEOUT_S"):  # a timeout would close a connection again
        monkeypatch.setattr(f"mats.bootstrap.{name}", 60.0)
    monkeypatch.setattr("mats.bootstrap.models.budgets_of", lambda settings: BATCH_BUDGETS)
    monkeypatch.setattr("mats.adapters.opensearch.domain.Domain", partial(Domain, read_s=60.0))
    credentials(monkeypatch, bedrock_runtime=server.url, dynamodb=server.url)
    system = bootstrap.open_system(
        Settings(
            index_endpoint=server.url, bedrock=True, encoder="amazon.titan-embed-text-v2:0", switches_table="switches",
            callers_table="callers",
        )
    )  # fmt: skip
    assert system.application.audiences_of is not None
    system.open_connections()
    opened = server.accepted
    assert opened >= 4  # reranker, encoder, tables, domain
    bedrock = system.models.service
    assert isinstance(bedrock, factory.Bedrock)
    bedrock.online.open_connection()
    system.stores.index.lexical(["x"], Filter(), depth=1)
    system.application.audiences_of("arn:aws:iam::123456789012:role/Buyer")
    assert server.accepted == opened


def test_what_cannot_be_opened_in_advance_is_logged_and_nothing_else(monkeypatch, caplog):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}"
    credentials(monkeypatch, bedrock_runtime=nowhere, dynamodb=nowhere)
    system = bootstrap.open_system(Settings(index_endpoint=nowhere, bedrock=True, encoder="none", callers_table="c"))
    system.open_connections()
    assert sum("was not opened in advance" in message for message in caplog.messages) == 3
