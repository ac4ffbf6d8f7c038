"""The online path over HTTP while the reranker is ill: every answer comes, in time, and says what it did without."""

import json
import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.aws.bedrock import BedrockServer, Drip, Stall, tool_reply
from tests.integration.conftest import Mats, Service, serving, tool

TASKS = {
    "refund": "gives money back to a customer who returned something",
    "geocode": "finds where the money of a customer was spent, on a map",
    "mail": "writes to each customer who owes money since last month",
    "weather": "forecasts rain, so that no customer loses money on an outing",
    "translate": "turns amounts of money into the currency of the customer's country",
}
NAMES = list(TASKS)
ITEMS = [tool(name, description=task) for name, task in TASKS.items()]
ASKED = {"query": "money back for a customer"}
HANGING = Stall(math.inf, before_headers=True)


@contextmanager
def service_asking(server: BedrockServer, stocked: Mats, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name, value in {**server.client_environment(), "MATS_BEDROCK": "1", "MATS_WRITER_MODEL": "none"}.items():
        monkeypatch.setenv(name, value)
    with serving(stocked) as running:
        yield running


def answer_of(service: Service) -> dict[str, Any]:
    status, answer = service.request("/discover", ASKED)
    assert status == 200
    assert len(answer["results"]) == len(NAMES)
    return answer


def order(answer: dict[str, Any]) -> list[tuple[str, float]]:
    return [(result["id"], result["score"]) for result in answer["results"]]


def logged(stocked: Mats) -> str:
    return (stocked.home / "mats.log").read_text()


def test_a_hanging_reranker_costs_its_budget_and_after_five_of_them_nothing(stocked, monkeypatch):
    with serving(stocked) as without:
        expected = order(answer_of(without))
    with (
        BedrockServer(lambda exchange: HANGING) as server,
        service_asking(server, stocked, monkeypatch) as service,
        ThreadPoolExecutor(5) as clients,
    ):
        first = list(clients.map(lambda n: answer_of(service), range(5)))
        assert len(server.exchanges) == 5
        later = [answer_of(service) for _ in range(10)]
        assert len(server.exchanges) == 5
    for answer in [*first, *later]:
        assert answer["degraded"] == ["llm"]
        assert order(answer) == expected
        assert "rerank" not in answer["took_ms"]
    log = logged(stocked)
    assert "rerank took longer than 2500 ms" in log
    assert log.count("rerank: not asked, because it failed several times in a row") == 10


def test_thirty_callers_at_once_all_get_an_answer_while_the_reranker_drips(stocked, monkeypatch):
    reply = json.dumps(tool_reply("judge", {"t": "tool", "s": [1] * len(NAMES)})).encode()
    with (
        BedrockServer(lambda exchange: Drip(reply, every_s=0.5)) as server,
        service_asking(server, stocked, monkeypatch) as service,  # told to stop while the reranker drips
        ThreadPoolExecutor(30) as clients,
    ):
        answers = list(clients.map(lambda n: answer_of(service), range(30)))
        assert len(server.exchanges) >= 5
        assert answer_of(service)["degraded"] == ["llm"]
        assert service.request("/healthz")[0] == 200
    assert all(answer["degraded"] == ["llm"] for answer in answers)
    assert all("lexical" in answer["took_ms"] for answer in answers)
