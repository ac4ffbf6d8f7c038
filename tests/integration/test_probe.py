"""Endpoints are looked at, and what does not answer comes behind what does: over real servers on this machine."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from mats.adapters.probe import ProbeClient
from mats.bootstrap.local import local_system
from mats.domain.shortlist.fitness import Life, Target
from mats.edge.http import local_caller
from mats.edge.routes import search_answer
from mats.edge.schema import Answer, DiscoverRequest
from mats.settings import Settings
from mats.usecases.probe import ProbeEndpoints
from tests.fakes import FakeClock
from tests.integration.conftest import Mats
from tests.servers.raw_http import answering, drip, response
from tests.servers.site import Asked, site

JSON_RPC = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}
ERROR = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}


@contextmanager
def closed_port() -> Iterator[str]:
    """An address at which nothing listens, and nothing else will."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def replying(answer: Any) -> Any:
    return lambda: site(lambda asked: answer)


def silence(connection: socket.socket) -> None:
    threading.Event().wait(3)


MCP = {
    Life.ALIVE: [replying(JSON_RPC), replying(ERROR), replying((307, {"Location": "/mcp/"})), replying(429)],
    Life.GATED: [replying(401), replying(403), replying((402, {}))],
    Life.MISSED: [
        closed_port, replying(404), replying(405), replying(b"<html>"), replying(503), replying(500),
        lambda: answering(silence), lambda: answering(lambda connection: drip(connection, b"HTTP/1.1 200 OK\r\n\r\n")),
        lambda: answering(lambda connection: connection.sendall(b"no http")), replying({"ok": True}),
        lambda: answering(response("200 OK\r\n" + "X: y\r\n" * 200)),
    ],
}  # fmt: skip
HEAD = {
    Life.ALIVE: [replying(200), replying(404), replying(405), replying(501), replying(500), replying((301, {}))],
    Life.GATED: [replying(401)],
    Life.MISSED: [closed_port, replying(502), replying(410), lambda: answering(silence)],
}


@pytest.mark.parametrize(
    ("method", "life", "server"),
    [
        (method, life, server)
        for method, by_life in (("mcp", MCP), ("head", HEAD))
        for life, servers in by_life.items()
        for server in servers
    ],
)
def test_what_an_endpoint_shows(method, life, server):
    with server() as url:
        seen = ProbeClient(private=True, timeout_s=2)(Target(method, f"{url}/mcp"))
    assert seen is not None
    assert seen.life is life, seen


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/latest", "http://127.0.0.1:9/x", "http://[::1]:9/x", "http://10.1.2.3/x", "http://localhost/x",
     "ftp://example.com", "http://user:pw@example.com/x", "http://[fd00:ec2::254]/x", "http://0.0.0.0/x"],
)  # fmt: skip
def test_nothing_is_looked_at_behind_a_blocked_address(url):
    assert ProbeClient()(Target("head", url)) is None


def test_a_look_is_no_call_and_ends_its_session():
    seen: list[Asked] = []

    def answer(asked: Asked) -> Any:
        seen.append(asked)
        return (200, {"Content-Type": "application/json", "Mcp-Session-Id": "s1"}, json.dumps(JSON_RPC).encode())

    with site(answer) as url:
        look = ProbeClient(private=True)
        for method in ("mcp", "a2a", "head"):
            assert look(Target(method, f"{url}/x?y=1")) == (Life.ALIVE, "")
    posted = [json.loads(asked.body)["method"] for asked in seen if asked.method == "POST"]
    assert posted == ["initialize", "agent/getAuthenticatedExtendedCard"]
    assert {asked.target for asked in seen} == {"/x?y=1"}
    assert not [asked for asked in seen if asked.headers["Authorization"]]


SERVICES = [
    "refund a card payment", "book a ferry ticket", "translate a legal contract", "resize a photograph",
    "forecast the tide", "send a parcel label", "transcribe a phone call", "detect fraud in invoices",
    "plan a bicycle route", "water a greenhouse",
]  # fmt: skip
"""Each is offered by ten servers alike: four of them dead, two gated, four alive."""
DEAD, GATED = 4, 2


MORE = " of the shop; returns a receipt, and notes who asked for it and when."


def name_of(service: str) -> str:
    return "do_" + "_".join(service.split()[::-1])


@pytest.fixture
def hundred(mats: Mats) -> Iterator[tuple[Mats, dict[str, str]]]:
    """A registry of a hundred endpoints, and the state of each capability."""
    rows, states = [], {}
    with ExitStack() as servers:
        for service in SERVICES:
            for number in range(10):
                state = "dead" if number < DEAD else "gated" if number < DEAD + GATED else "alive"
                server = {
                    "dead": [closed_port, replying(404), replying(503), replying(b"parked")][number % 4],
                    "gated": replying(401), "alive": replying(JSON_RPC if number % 2 else ERROR),
                }[state]  # fmt: skip
                url = servers.enter_context(server())
                name = name_of(service)
                namespace = f"org.{'abcdefghij'[number]}{number}"
                states[f"{namespace}/{name}"] = state
                rows.append({
                    "kind": "tool", "namespace": namespace, "name": name,
                    "description": f"{service.capitalize()} for customers{MORE}",
                    "endpoint": f"{url}/mcp", "tags": ["mcp"],
                })  # fmt: skip
        lines = "\n".join(map(json.dumps, rows))
        mats("import", "-", stdin=lines.encode()).done()
        yield mats, states


def wrongly_before(mats: Mats, states: dict[str, str], worse: set[str], holds: dict[str, Any] | None) -> int:
    """How often one of the worse comes before a living one that offers the same, in the answers to all services."""
    count = 0
    system = local_system(Settings(home=mats.home, encoder="none"), create=False)
    try:
        for service in SERVICES:
            request = DiscoverRequest.parse({"query": service, "holds": holds})
            answer = search_answer(system.application, local_caller(system.settings), request)
            assert isinstance(answer, Answer)
            shown = [states[result.id] for result in answer.results if result.name == name_of(service)]
            assert shown
            last = max((place for place, state in enumerate(shown) if state == "alive"), default=len(shown))
            count += sum(state in worse for state in shown[:last])
    finally:
        system.close()
    return count


@contextmanager
def rounds_of(mats: Mats, **changes: Any) -> Iterator[ProbeEndpoints]:
    """What `mats probe --private` does, without pauses between two looks at a host."""
    system = replace(local_system(Settings(home=mats.home, encoder="none"), create=False), **changes)
    try:
        yield replace(system.probe(private=True), pause=lambda seconds: None)
    finally:
        system.close()


def test_of_a_hundred_endpoints_none_dead_or_gated_comes_before_a_living_equal(hundred):
    mats, states = hundred
    no_auth = {"auth": []}
    before = wrongly_before(mats, states, {"dead", "gated"}, no_auth)
    assert "No endpoint was looked at" in mats("probe", "--list").out
    with rounds_of(mats) as rounds:
        assert rounds() == {"endpoints": 100, "missed": 40, "gated": 20, "alive": 40}
    assert before > 10
    assert wrongly_before(mats, states, {"dead"}, None) == 0
    assert wrongly_before(mats, states, {"dead", "gated"}, no_auth) == 0
    assert mats("probe", "--private", "--json").json == {"endpoints": 100}, "each was looked at a moment ago"
    listed = mats("probe", "--list", "--json").json
    assert {id for each in listed for id in each["capabilities"]} == {id for id, is_ in states.items() if is_ == "dead"}
    found = mats("search", SERVICES[0], "--holds", json.dumps({"auth": [], "leave_out": True}), "--json").json
    assert {states[each["id"]] for each in found["excluded"]} == {"gated"}, "one miss is not dead yet"
    assert all(each["because"] for each in found["excluded"])


def test_in_three_rounds_the_dead_are_called_dead_and_no_living_one(hundred):
    mats, states = hundred
    clock, counts = FakeClock(), []
    with rounds_of(mats, clock=clock) as rounds:
        for _ in range(3):
            counts.append(dict(rounds()))
            clock.time = (datetime.fromisoformat(clock.time) + timedelta(hours=1)).isoformat()
        assert [(each.get("missed", 0), each.get("dead", 0)) for each in counts] == [(40, 0), (40, 0), (0, 40)]
        targets, proofs = rounds.targets(), rounds.book.load()
        called = {id: proofs[target].life for target, ids in targets.items() for id in ids}
        assert {id for id, life in called.items() if life is Life.DEAD} == {
            id for id, state in states.items() if state == "dead"
        }
        assert {str(proof.life) for proof in proofs.values()} == {"dead", "gated", "alive"}
        [shown, *_] = [proof for proof in proofs.values() if proof.life is Life.DEAD]
        assert "3 misses in a row since" in str(shown)
    holds = json.dumps({"auth": [], "leave_out": True})
    found = mats("search", SERVICES[0], "--holds", holds, "--json").json
    assert {states[result["id"]] for result in found["results"] if result["name"] == name_of(SERVICES[0])} == {"alive"}
    assert {states[each["id"]] for each in found["excluded"]} == {"dead", "gated"}
    nothing = mats("search", SERVICES[0], "--holds", json.dumps({"transports": ["a2a"], "leave_out": True})).out
    assert "Nothing found; " in nothing
    assert "Left out: org." in nothing
    assert ": is called over mcp" in nothing
