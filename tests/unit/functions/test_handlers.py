"""The handlers over fakes: events in, responses out, as AWS has them."""

import json

import pytest

from functions.discovery import handler as discovery_handler
from functions.enrichment import handler as enrichment_handler
from local.envelope import proxy_request, sqs_batch
from mats.bootstrap import Discovery
from mats.domain.errors import DependencyFailed
from mats.ports import Event
from mats.usecases.look_up import LookUp
from tests.builders import a_profile, a_registration
from tests.fakes import FakeEncoder
from tests.unit.usecases.test_discover import THREE, discover_over, indexed
from tests.unit.usecases.test_enrich import World

SECRET = a_profile(name="secret", description="give money back", visible_to=("finance",))


def ask(method: str, path: str, body: object = None, *, audiences=(), headers=None) -> tuple[int, dict]:
    index = indexed(*THREE, SECRET)
    discovery = Discovery(discover_over(index), LookUp(index))
    raw = b"" if body is None else json.dumps(body).encode()
    response = discovery_handler.respond(proxy_request(method, path, headers or {}, raw, audiences), discovery)
    return response.status, json.loads(response.body)


def test_a_question_is_answered():
    status, answer = ask("POST", "/discover", {"query": "address coordinates", "limit": 1})
    assert status == 200
    assert answer["results"][0]["name"] == "geocode"


def test_the_answers_own_description_is_served():
    assert ask("GET", "/openapi.json")[1]["openapi"] == "3.1.0"


def test_audiences_come_from_the_authorizer_and_from_nowhere_else():
    path, forged = f"/capabilities/{SECRET.id}", {"audiences": "finance", "X-Audiences": "finance"}
    assert ask("GET", path)[0] == 404
    assert ask("GET", path, headers=forged)[0] == 404
    assert ask("GET", path, audiences=["finance"])[0] == 200
    hidden = ask("POST", "/discover", {"query": "money"}, headers=forged)[1]["results"]
    assert SECRET.id not in [r["id"] for r in hidden]


def test_a_proxy_response_is_what_api_gateway_expects():
    index = indexed(*THREE)
    event = proxy_request("GET", "/healthz", {}, b"", ())
    proxied = discovery_handler.respond(event, Discovery(discover_over(index), LookUp(index))).to_proxy()
    assert proxied.keys() == {"statusCode", "headers", "body", "isBase64Encoded"}
    assert proxied["statusCode"] == 200


def message(name: str, *, id: str | None = None) -> Event:
    return Event(1, id or f"m-{name}", "Registry", "INSERT", a_registration(name=name).id, "2026-01-01T00:00:00Z", 1)


def failures(response: dict) -> list[str]:
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


def test_a_batch_that_is_done_has_no_failures():
    world = World(encoder=FakeEncoder())
    world.registry.put([a_registration(name=n) for n in "ab"])
    assert failures(enrichment_handler.respond(sqs_batch([message("a"), message("b")]), world.enrich)) == []
    assert len(world.profiles.kept) == 2


def test_only_what_is_not_done_comes_again():
    world = World(encoder=FakeEncoder(broken=True))
    world.registry.put([a_registration(name="a")])
    batch = sqs_batch([message("a"), message("never-registered")])
    assert failures(enrichment_handler.respond(batch, world.enrich)) == ["m-a"]


def test_an_unreadable_message_goes_to_the_dead_letters_and_holds_nobody_up():
    world = World(encoder=FakeEncoder())
    world.registry.put([a_registration(name="a")])
    batch = sqs_batch([message("a")])
    batch["Records"].append({"messageId": "m-bad", "body": "not an event"})
    assert failures(enrichment_handler.respond(batch, world.enrich)) == ["m-bad"]
    assert len(world.profiles.kept) == 1


def test_a_store_that_is_down_gets_the_whole_batch_again(monkeypatch):
    world = World(encoder=FakeEncoder())

    def down(ids):
        raise DependencyFailed("down")

    monkeypatch.setattr(world.registry, "get", down)
    batch = sqs_batch([message("a"), message("b")])
    assert failures(enrichment_handler.respond(batch, world.enrich)) == ["m-a", "m-b"]


def test_a_bug_is_not_hidden(monkeypatch):
    world = World(encoder=FakeEncoder())

    def bug(ids):
        raise ZeroDivisionError

    monkeypatch.setattr(world.registry, "get", bug)
    with pytest.raises(ZeroDivisionError):
        enrichment_handler.respond(sqs_batch([message("a")]), world.enrich)
