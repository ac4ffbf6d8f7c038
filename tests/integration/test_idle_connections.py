"""After a pause, no request goes over a connection that the other side may have given up."""

import json
import socket
from collections.abc import Callable
from functools import partial
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
from mats.domain.prompts.usage import Prices
from mats.domain.search.query import Filter
from mats.evaluation.systems.models import BATCH_BUDGETS
from mats.settings import Settings
from tests.aws.tables import credentials
from tests.servers.canned import CannedResponse, CannedServer

REPLY = json.dumps({
    "hits": {"total": {"value": 0}, "hits": []}, "aggregations": {"0000": {"doc_count": 0}, "0001": {"doc_count": 0}},
    "Item": {}, "embedding": [1.0], "inputTextTokenCount": 1,
}).encode()  # fmt: skip
TIMEOUT_S = 2.0


@pytest.fixture
def server(canned: CannedServer) -> CannedServer:
    """A healthy service of each kind, which counts connections."""
    canned.respond(CannedResponse(REPLY))
    return canned


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
def call(request: pytest.FixtureRequest, server: CannedServer, monkeypatch: pytest.MonkeyPatch) -> Call:
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
def test_a_connection_that_was_idle_too_long_is_replaced(server: CannedServer, pause, call: Call, monotonic_s: float):
    call()
    pause(monotonic_s, wall_s=IDLE_S + 1)
    call()
    assert server.connections == 2


def test_connections_are_reused_in_between(server: CannedServer, pause, call: Call):
    for _ in range(3):
        call()
        pause(IDLE_S - 1)
    assert server.connections == 1


def test_a_connection_that_the_server_closed_is_replaced(server: CannedServer, pause, call: Call):
    server.respond(CannedResponse(REPLY, closes=True))
    for _ in range(3):
        call()
    assert server.connections == 3


def test_connections_have_keepalive(server: CannedServer, monkeypatch: pytest.MonkeyPatch, call: Call):
    made: list[socket.socket] = []
    create = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        made.append(self)
        create(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)
    call()
    assert [one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) for one in made] == [1]
    assert [one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for one in made] == [1]


def test_after_a_restore_the_first_answer_finds_every_connection_open(server: CannedServer, monkeypatch):
    for name in ("system._OPEN_S", "cloud._ONLINE_TIMEOUT_S"):  # a timeout would close a connection again
        monkeypatch.setattr(f"mats.bootstrap.{name}", 60.0)
    monkeypatch.setattr("mats.bootstrap.models.budgets_of", lambda settings: BATCH_BUDGETS)
    monkeypatch.setattr("mats.adapters.opensearch.domain.Domain", partial(Domain, read_s=60.0))
    credentials(monkeypatch, bedrock_runtime=server.url, dynamodb=server.url)
    system = bootstrap.open_system(
        Settings(
            index_endpoint=server.url, bedrock=True, encoder="amazon.titan-embed-text-v2:0", callers_table="callers",
        )
    )  # fmt: skip
    assert system.application.audiences_of is not None
    system.open_connections()
    opened = server.connections
    assert opened >= 4  # reranker, encoder, tables, domain
    bedrock = system.models.service
    assert isinstance(bedrock, factory.Bedrock)
    bedrock.online.open_connection()
    system.stores.index.lexical(["x"], Filter(), depth=1)
    system.application.audiences_of("arn:aws:iam::123456789012:role/Buyer")
    assert server.connections == opened


def test_what_cannot_be_opened_in_advance_is_logged_and_nothing_else(monkeypatch, caplog):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}"
    credentials(monkeypatch, bedrock_runtime=nowhere, dynamodb=nowhere)
    system = bootstrap.open_system(Settings(index_endpoint=nowhere, bedrock=True, encoder="none", callers_table="c"))
    system.open_connections()
    assert sum("was not opened in advance" in message for message in caplog.messages) == 3
