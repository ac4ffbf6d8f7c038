"""From an owner's item to an agent's answer and back, through everything between them."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.aws.deployment import ACCOUNT, Deployment
from tests.aws.python import deployed_python
from tests.aws.recorder import Refuse, every
from tests.aws.runtime import json_records
from tests.conftest import skip_or_fail
from tests.infra.synth import JWT
from tests.path.world import Make, World, item

pytestmark = pytest.mark.server

REFUND = "Refunds a card payment in full or in part."
WEATHER = "Tells tomorrow's weather for a city."


def test_functions_run_on_the_python_that_is_deployed(world: World) -> None:
    python, _ = deployed_python()
    tells = "import sys; print('python%d.%d' % sys.version_info[:2])"
    version = subprocess.run([python, "-c", tells], capture_output=True, text=True, check=True).stdout.strip()
    if python == sys.executable:
        skip_or_fail("make .venv/.functions, with that Python")
    runtimes = {each["Runtime"] for each in world.deployment.all("AWS::Lambda::Function") if "Layers" in each.raw}
    assert runtimes == {version}


def test_an_item_is_enriched_found_changed_removed_and_put_again(world: World) -> None:
    id = world.put(item("op_17", REFUND))
    other = world.publish(item("forecast", WEATHER))
    profile = _profile(world, id)
    assert (profile["status"], profile["enriched"], profile["indexed_rev"]) == ("active", True, profile["rev"])
    assert sorted(entry["id"] for entry in world.indexed()) == sorted([id, other])
    found = world.discover("refunds a card payment")
    assert found.ids[0] == id
    assert found.lacks == []
    assert found.content["verdict"] == "match"
    assert found.content["results"][0]["signals"].keys() >= {"llm", "bm25"}

    world.publish(item("op_17", "Cancels subscriptions at the end of their term.", version="2"))
    assert world.look_up(id).content["version"] == "2"
    assert world.discover("cancel a subscription").ids[0] == id
    assert _best(world, "refunds a card payment")["signals"]["llm"] == 0

    world.remove(id)
    world.settle()
    assert id not in world.discover("cancel a subscription").ids
    assert world.look_up(id).status == 404
    assert _profile(world, id)["status"] == "deleted"

    world.publish(item("op_17", REFUND))
    assert world.discover("refunds a card payment").ids[0] == id
    assert _profile(world, id)["rev"] > profile["rev"]
    assert world.path.waiting() == {}


def test_the_row_of_a_namespace_reaches_everything_in_it_and_its_withdrawal_too(world: World) -> None:
    in_pay = {"namespace": "com.acme.pay", "provider": "ACME"}
    mine = [world.put({**item(f"refund_{n}", REFUND), **in_pay}) for n in range(23)]
    other = world.put({**item("refund", REFUND), "namespace": "com.acmes"})
    own = world.put({**item("own", REFUND), "namespace": "com.acme"})
    world.trust(own, 5)
    world.settle()
    before = {id: profile["content"] for id, profile in world.profiles().items()}

    world.trust_namespace("com.acme", trust=80, provider="Acme")
    world.settle()
    profiles = world.profiles()
    seen = {id: (row.get("trust"), row.get("provider"), row.get("provider_verified")) for id, row in profiles.items()}
    assert seen == dict.fromkeys(mine, (80, "Acme", True)) | {own: (5, "Acme", True), other: seen[other]}
    assert profiles[other]["content"] == before[other]
    assert world.look_up(mine[0]).content["provider_verified"]
    assert all(entry["findable"] for entry in world.indexed())
    assert world.night()[0]["counts"]["sent"] == 0

    world.trust_namespace("com.acme")
    world.settle()
    assert {id: profile["content"] for id, profile in world.profiles().items()} == before
    assert world.path.waiting() == {}


def test_a_bad_item_is_told_every_fault_and_the_bus_hears_of_it_once(world: World) -> None:
    bad = {"namespace": "com.acme", "name": "bad", "kind": "toool", "endpoint": "x" * 3000, "parameters": {"a": 1}}
    id = world.publish(bad)
    profile = _profile(world, id)
    assert profile["status"] == "rejected"
    assert all(attribute in profile["error"] for attribute in ("kind", "endpoint", "parameters"))
    heard = [event for event in world.path.events if event["detail-type"] == "CapabilityRejected"]
    assert [(event["source"], event["detail"]["id"]) for event in heard] == [("mats.enrichment", id)]
    assert heard[0]["detail"]["error"] == profile["error"]
    assert world.path.waiting() == {}
    assert world.look_up(id).status == 404

    world.publish(item("bad", REFUND))
    assert (_profile(world, id)["status"], _profile(world, id)["error"]) == ("active", "")
    assert world.discover("refund a card payment").ids == [id]


@pytest.mark.parametrize(
    ("namespace", "name"),
    [("com.acme", 'a "quoted" <$.eventName> \\ name/of parts é%2F'), ("com/acme", "x"), ("%", "x")],
)
def test_no_key_that_dynamodb_takes_goes_astray(world: World, namespace: str, name: str) -> None:
    world.publish({"namespace": namespace, "name": name, "kind": "tool", "description": REFUND})
    assert world.path.waiting() == {}
    rows = list(world.profiles().values())
    assert [row["status"] for row in rows] == ["active" if namespace == "com.acme" else "rejected"]
    if namespace == "com.acme":
        assert world.look_up(f"{namespace}/{name}").content["name"] == name


def test_only_callers_of_its_audiences_see_a_capability(world: World) -> None:
    hidden = world.put(item("refund_payment", REFUND, visible_to=["finance"]))
    shown = world.put(item("refund_status", "Shows how far a card payment's refund is."))
    world.admit(f"arn:aws:iam::{ACCOUNT}:role/Clerk", "finance", "audit")
    world.admit(f"arn:aws:iam::{ACCOUNT}:role/Guest", "marketing")
    world.settle()
    clerk, guest = (f"arn:aws:sts::{ACCOUNT}:assumed-role/{role}/session-1" for role in ("Clerk", "Guest"))

    assert set(world.discover("refund a card payment", caller=clerk).ids) == {hidden, shown}
    assert world.look_up(hidden, caller=clerk).status == 200
    for caller in (
        guest,
        f"arn:aws:sts::{ACCOUNT}:assumed-role/Stranger/finance",
        f"arn:aws:iam::{ACCOUNT}:user/Clerk",
    ):
        assert world.discover("refund a card payment", caller=caller).ids == [shown]
        assert world.look_up(hidden, caller=caller).status == 404


def test_the_api_tells_of_one_capability_of_its_health_and_of_itself(world: World) -> None:
    id = world.publish(item("refund/payment of 100%", REFUND, endpoint="https://pay.example.com/refunds"))
    told = world.look_up(id)
    assert (told.status, told.content["id"], told.content["endpoint"]) == (200, id, "https://pay.example.com/refunds")
    assert told.content["summary"] == REFUND
    health = world.ask("GET", "/healthz")
    assert (health.status, health.content["status"]) == (200, "ok")
    assert health.content["encoder"].startswith("amazon.titan-embed-text-v2:0")
    described = world.ask("GET", "/openapi.json")
    assert {"/discover", "/healthz", "/capabilities/{id}"} <= described.content["paths"].keys()
    absent = world.look_up("com.acme/absent")
    assert (absent.status, absent.headers["Content-Type"]) == (404, "application/problem+json")
    wrong = world.ask("POST", "/discover", {"query": "", "colour": "red"})
    assert wrong.status == 422
    assert {error["field"] for error in wrong.content["errors"]} == {"query", "colour"}


def test_what_has_not_changed_costs_no_model_and_no_write(world: World) -> None:
    world.put(item("refund_payment", REFUND))
    world.put({"namespace": "com.acme", "name": "bad", "kind": "toool"})
    world.put(item("gone", WEATHER))
    world.remove("com.acme/gone")
    world.settle()
    before = [len(each.recorder.calls) for each in world.environments]
    world.path.repeat(12)
    world.settle()
    later = [call for each, n in zip(world.environments, before, strict=True) for call in each.recorder.calls[n:]]
    assert later
    assert [call for call in later if call.service != "dynamodb" or call.writes] == []


def test_with_the_writer_down_an_item_is_findable_as_its_owner_wrote_it_and_the_message_waits(world: World) -> None:
    id = world.put(item("refund_payment", REFUND))
    world.weather(every(Refuse(429, "ThrottlingException"), service="bedrock", operation="converse"))
    _deliver_once(world)
    assert _profile(world, id)["enriched"] is False
    assert _waiting(world) == ["mats-changes"]
    reply = world.discover("refund a card payment")
    assert reply.ids == [id]
    assert reply.content["results"][0]["enriched"] is False
    assert "llm" in reply.content["degraded"]

    world.weather(None)
    world.settle()
    assert _profile(world, id)["enriched"] is True
    assert world.path.waiting() == {}


def test_a_reply_that_the_service_cannot_read_is_no_dead_letter_and_not_asked_for_again(world: World) -> None:
    id = world.put(item("refund_payment", REFUND))
    unreadable = every(Refuse(424, "ModelErrorException"), service="bedrock", operation="converse")
    world.offline.weather = unreadable
    world.settle()
    assert world.path.waiting() == {}
    assert "ModelErrorException" in _profile(world, id)["notes"][0]
    world.weather(unreadable)
    for _ in range(6):
        reply = world.discover("refund a card payment")
        assert (reply.ids, reply.lacks) == ([id], ["llm"])
    world.weather(None)
    assert world.discover("refund a card payment").lacks == []
    (night,) = world.night()
    assert (night["counts"]["given_up"], night["counts"]["sent"]) == (1, 0)


def test_what_was_given_up_waits_with_its_reason_logged_and_is_redriven(world: World) -> None:
    id = world.put(item("refund_payment", REFUND))
    world.offline.weather = every(Refuse(408, "ModelTimeoutException"), service="bedrock", operation="converse")
    world.settle()
    assert _waiting(world) == ["mats-enrichment-dead"]
    assert any("ModelTimeoutException" in line for line in world.offline.function.lines)
    world.weather(None)
    world.redrive()
    assert _profile(world, id)["enriched"] is True
    assert world.path.waiting() == {}


def test_every_metric_of_ours_that_an_alarm_watches_is_written_as_it_is_watched(world: World) -> None:
    world.publish(item("refund_payment", REFUND))
    world.discover("refund a card payment")
    world.online.weather = every(Refuse(503), service="opensearch")
    assert world.discover("refund a card payment").status == 503
    for environment in world.environments:
        environment.weather = every(Refuse(403, "AccessDeniedException"), service="bedrock")
    world.publish(item("forecast", WEATHER))
    world.discover("refund a card payment")
    records = [record for each in world.environments for record in json_records(each.function.lines)]
    written = {
        (metric["Name"], tuple(sorted((name, record[name]) for name in dimensions)))
        for record in records
        for directive in record.get("_aws", {}).get("CloudWatchMetrics", ())
        for metric in directive["Metrics"]
        for dimensions in directive["Dimensions"]
    }
    watched = set(_watched(world.deployment))
    assert watched
    assert watched <= written
    assert {"discovered", "enriched", "model_refused"} <= {record.get("event") for record in records}, "as fields"


def test_with_tokens_the_authorizer_s_word_decides_and_no_table_of_callers_is_asked(made: Make) -> None:
    world = made(context=JWT)
    hidden = world.publish(item("refund_payment", REFUND, visible_to=["finance"]))
    assert world.discover("refund a card payment").ids == []
    assert world.discover("refund a card payment", vouched={"audiences": "finance,audit"}).ids == [hidden]
    tables = {arn.rpartition("/")[2] for action, arn in world.online.recorder.needs if action.startswith("dynamodb:")}
    assert tables == {"mats-receipts"}


@pytest.mark.parametrize(("context", "described"), [({}, True), ({"enrich": "sparse"}, False)])
def test_the_writer_describes_every_registration_or_sparse_ones_alone(
    made: Make, context: dict[str, str], described: bool
) -> None:
    world = made(context=context)
    examples = [f"refund order {number}" for number in range(5)]
    ids = [world.put(item("refund_payment", REFUND, examples=examples)), world.put(item("forecast", WEATHER))]
    world.settle()
    assert [_profile(world, id)["enriched"] for id in ids] == [described, True]


def test_without_an_encoder_words_alone_find_and_nothing_is_encoded(made: Make) -> None:
    world = made(context={"encoder_model": "none"})
    id = world.put(item("refund_payment", REFUND))
    world.publish(item("forecast", WEATHER))
    found = world.discover("refunds a card payment")
    assert found.ids[0] == id
    assert found.content["without"] == ["neural"]
    assert found.lacks == []
    assert _profile(world, id)["enriched"]
    assert {exchange.operation for exchange in world.bedrock.exchanges} == {"Converse"}


def _watched(deployment: Deployment) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Name and dimensions of each metric of a function that an alarm watches."""
    for alarm in deployment.all("AWS::CloudWatch::Alarm"):
        alone = {name: alarm.get(name) for name in ("Namespace", "MetricName", "Dimensions")}
        several = [each["MetricStat"]["Metric"] for each in alarm.get("Metrics", []) if "MetricStat" in each]
        for metric in [alone, *several]:
            dimensions = {each["Name"]: each["Value"] for each in metric.get("Dimensions") or ()}
            if metric.get("Namespace") == "mats" and "service" in dimensions:
                yield metric["MetricName"], tuple(sorted(dimensions.items()))


def _deliver_once(world: World) -> None:
    world.path.pump()
    world.path.deliver(world.enrich)
    world.refresh()


def _waiting(world: World) -> list[str]:
    return list(world.path.waiting())


def _profile(world: World, id: str) -> dict[str, Any]:
    profile = world.profile(id)
    assert profile is not None
    return profile


def _best(world: World, query: str) -> dict[str, Any]:
    reply = world.discover(query)
    assert reply.status == 200
    return dict(next(iter(reply.content["results"]), {}))
