"""The handlers over fakes: events in, responses out, as AWS has them."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from mats.domain.errors import DependencyFailed
from mats.edge.api_gateway import parse_request, proxy_response
from mats.edge.app import Application
from mats.edge.changes import ChangeProcessor, process_batch
from mats.edge.dispatch import respond
from mats.ports import QueuedChange
from mats.usecases.look_up import LookUp
from tests.aws_events import proxy_request, respond_to, sqs_batch
from tests.builders import a_profile, a_registration
from tests.conftest import ROOT
from tests.fakes import FakeEncoder
from tests.unit.usecases.test_discover import THREE, discover_over, indexed
from tests.unit.usecases.test_enrich import World

SECRET = a_profile(name="secret", description="give money back", visible_to=("finance",))


def ask(method: str, path: str, body: object = None, *, audiences=(), headers=None) -> tuple[int, dict]:
    index = indexed(*THREE, SECRET)
    application = Application(discover_over(index), LookUp(index))
    raw = b"" if body is None else json.dumps(body).encode()
    response = respond_to(proxy_request(method, path, headers or {}, raw, audiences), application)
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
    proxied = proxy_response(respond_to(event, Application(discover_over(index), LookUp(index))))
    assert proxied.keys() == {"statusCode", "headers", "body", "isBase64Encoded"}
    assert proxied["statusCode"] == 200


def message(name: str, *, id: str | None = None) -> QueuedChange:
    return QueuedChange(
        1, id or f"m-{name}", "Registry", "INSERT", a_registration(name=name).id, "2026-01-01T00:00:00Z", 1
    )


def enriched(batch: dict, world: World, **more) -> dict:
    return process_batch(batch, ChangeProcessor(world.enrich, dict, **more))


def failures(response: dict) -> list[str]:
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


def test_a_batch_that_is_done_has_no_failures():
    world = World(encoder=FakeEncoder())
    world.registry.put([a_registration(name=n) for n in "ab"])
    assert failures(enriched(sqs_batch([message("a"), message("b")]), world)) == []
    assert len(world.profiles.kept) == 2


def test_only_what_is_not_done_comes_again():
    world = World(encoder=FakeEncoder(broken=True))
    world.registry.put([a_registration(name="a")])
    batch = sqs_batch([message("a"), message("never-registered")])
    assert failures(enriched(batch, world)) == ["m-a"]


def test_an_unreadable_message_goes_to_the_dead_letters_and_holds_nobody_up():
    world = World(encoder=FakeEncoder())
    world.registry.put([a_registration(name="a")])
    batch = sqs_batch([message("a")])
    batch["Records"].append({"messageId": "m-bad", "body": "not an event"})
    assert failures(enriched(batch, world)) == ["m-bad"]
    assert len(world.profiles.kept) == 1


def test_a_store_that_is_down_gets_the_whole_batch_again(monkeypatch):
    world = World(encoder=FakeEncoder())

    def down(ids):
        raise DependencyFailed("down")

    monkeypatch.setattr(world.registry, "get", down)
    batch = sqs_batch([message("a"), message("b")])
    assert failures(enriched(batch, world)) == ["m-a", "m-b"]


def test_a_bug_is_not_hidden(monkeypatch):
    world = World(encoder=FakeEncoder())

    def bug(ids):
        raise ZeroDivisionError

    monkeypatch.setattr(world.registry, "get", bug)
    with pytest.raises(ZeroDivisionError):
        enriched(sqs_batch([message("a")]), world)


def signed(role: str = "Buyer") -> dict:
    """What API Gateway says of a caller that signed with a role."""
    return {"identity": {"userArn": f"arn:aws:sts::123456789012:assumed-role/{role}/session-1"}}


ROLE = "arn:aws:iam::123456789012:role/Buyer"


def ask_signed(path: str, body: object = None, *, audiences_of, measured=None) -> tuple[int, dict]:
    index = indexed(*THREE, SECRET)
    found = Application(
        discover_over(index), LookUp(index), audiences_of=audiences_of, metrics=measured or (lambda measures: None)
    )
    event = proxy_request("POST" if body else "GET", path, {}, json.dumps(body).encode() if body else b"", ())
    response = respond_to({**event, "requestContext": signed()}, found)
    return response.status, json.loads(response.body)


def test_a_role_sees_what_operators_let_it_see():
    asked = []

    def callers(arn: str) -> frozenset[str]:
        asked.append(arn)
        return frozenset({"finance"})

    assert ask_signed(f"/capabilities/{SECRET.id}", audiences_of=callers)[0] == 200
    answer = ask_signed("/discover", {"query": "give money back"}, audiences_of=callers)[1]
    assert SECRET.id in [result["id"] for result in answer["results"]]
    assert set(asked) == {ROLE}
    assert ask_signed(f"/capabilities/{SECRET.id}", audiences_of=lambda arn: frozenset())[0] == 404


def test_where_nobody_knows_what_a_caller_may_see_it_gets_what_everyone_may_and_is_told():
    def down(arn: str) -> frozenset[str]:
        raise DependencyFailed("no table")

    status, answer = ask_signed("/discover", {"query": "give money back"}, audiences_of=down)
    assert status == 200
    assert "audiences" in answer["degraded"]
    assert SECRET.id not in [result["id"] for result in answer["results"]]
    assert ask_signed(f"/capabilities/{SECRET.id}", audiences_of=down)[0] == 503


def test_every_answer_is_measured():
    measured = []
    ask_signed("/discover", {"query": "address"}, audiences_of=lambda arn: frozenset(), measured=measured.append)
    (measures,) = measured
    assert measures["Answers"] == (1, "Count")
    assert measures["DegradedLlm"].value == 1
    assert measures["TotalMs"].unit == "Milliseconds"
    assert sum(name.startswith("Verdict") for name in measures) == 1


def test_every_batch_is_measured_also_one_that_failed(monkeypatch):
    world, measured = World(encoder=FakeEncoder()), []
    world.registry.put([a_registration(name="a")])
    enriched(sqs_batch([message("a"), message("gone")]), world, metrics=measured.append)
    assert measured[0]["Indexed"].value == 1
    assert measured[0]["Unchanged"].value == 1

    def down(ids):
        raise DependencyFailed("down")

    monkeypatch.setattr(world.registry, "get", down)
    enriched(sqs_batch([message("a")]), world, metrics=measured.append)
    assert measured[1]["Waiting"].value == 1


def test_a_change_that_meets_a_bug_holds_nobody_up(monkeypatch):
    world = World(encoder=FakeEncoder())
    world.registry.put([a_registration(name=n) for n in "abc"])
    read = world.registry.get

    def buggy(ids):
        if any(id.endswith("/b") for id in ids):
            raise ZeroDivisionError
        return read(ids)

    monkeypatch.setattr(world.registry, "get", buggy)
    assert failures(enriched(sqs_batch([message(n) for n in "abc"]), world)) == ["m-b"]
    assert len(world.profiles.kept) == 2


def test_callers_in_aws_do_not_hear_what_failed_inside():
    def down(arn: str) -> frozenset[str]:
        raise DependencyFailed("mats-callers in account 123456789012 denies it")

    index = indexed(*THREE)
    event = {**proxy_request("GET", f"/capabilities/{SECRET.id}", {}, b"", ()), "requestContext": signed()}
    application = Application(discover_over(index), LookUp(index), audiences_of=down)
    in_aws = parse_request(event)
    assert not in_aws.caller.sees_internal_errors
    local = replace(in_aws, caller=replace(in_aws.caller, sees_internal_errors=True))
    for request in (in_aws, local):
        response = respond(application, request)
        assert response.status == 503
        assert ("123456789012" in response.body) is (request is local)


def test_the_function_starts_without_what_only_some_requests_need():
    at_start = "import sys, functions.discovery.handler, mats.bootstrap.cloud, mats.adapters.bedrock.factory"
    environment = {name: value for name, value in os.environ.items() if name != "AWS_LAMBDA_FUNCTION_NAME"}
    ran = subprocess.run(
        [sys.executable, "-c", f"{at_start}; print(*sys.modules)"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(ran.stdout.split())
    assert "mats.edge.answer" in loaded
    for late in ("mcp", "openapi", "tools", "ard", "changes"):
        assert not {name for name in loaded if name.startswith((f"mats.edge.{late}", "mcp."))}, late
    offline = {f"mats.usecases.{name}" for name in ("enrich", "reindex", "reconcile", "backfill", "browse")}
    offline |= {f"mats.adapters.{name}" for name in ("bedrock.writer", "dynamodb.profiles", "eventbridge")}
    assert not loaded & offline
