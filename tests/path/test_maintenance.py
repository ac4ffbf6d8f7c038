"""Repair without a person: what the schedule and the stack's own events start, run as the templates define it."""

import json

import pytest

from mats.adapters.clock import SystemClock, fresh_id
from mats.adapters.dynamodb.profiles import DynamoProfiles
from mats.adapters.dynamodb.registry import DynamoRegistry, DynamoTrust
from mats.adapters.dynamodb.tables import Tables, from_row
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.domain.capability.capability import Id, parts
from mats.domain.profile.profile import Status
from mats.ports import Target
from mats.usecases.erase import Erase, Traces
from tests.aws.deployment import REGION
from tests.aws.recorder import Refuse, every, nth
from tests.aws.state_machine import ExecutionFailed
from tests.aws.tables import credentials
from tests.path.world import Make, World, item

pytestmark = pytest.mark.server

COUNT = 70  # more than a page


def _registered(world: World, count: int = COUNT) -> set[str]:
    ids = {world.put(item(f"tool-{n}", f"Handles item{n} well.")) for n in range(count)}
    world.settle()
    return ids


def _model_calls(world: World) -> int:
    return sum(call.service == "bedrock" for call in world.calls)


def _findable(world: World) -> set[str]:
    world.refresh()
    return {entry["id"] for entry in world.indexed() if entry["findable"]}


@pytest.mark.parametrize("status", ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "CREATE_COMPLETE"])
def test_a_domain_that_comes_back_empty_is_filled_by_the_stack_s_own_event(made: Make, status: str) -> None:
    world = made(timeout_s=60)  # so that each piece has time for one page
    ids = _registered(world)
    asked = _model_calls(world)
    world.drop_indices()
    relearned, output = world.deployed(status)
    assert (relearned["done"], relearned["counts"]) == (True, {})
    assert (output["done"], output["counts"]["reindexed"], output["counts"]["sent"]) == (True, COUNT, 0)
    # two pages of registry and profiles each, and of the index as far as searches see it already
    assert 3 + 2 <= world.execution.visited.count("Run") <= 3 * 2 + 1
    assert _findable(world) == ids
    assert _model_calls(world) == asked
    assert world.discover("handles item7").ids[0] == "com.acme/tool-7"


def test_a_stack_that_is_not_ours_or_not_ready_starts_nothing(world: World) -> None:
    assert world.deployed("UPDATE_IN_PROGRESS") == []
    assert world.deployed("DELETE_COMPLETE") == []


def test_every_night_lost_events_are_made_up_for_by_the_event_path(world: World) -> None:
    kept, lost, removed = (world.put(item(name, f"Does {name}.")) for name in ("kept", "lost", "removed"))
    world.settle()
    world.put(item("lost", "Does something new."))
    world.remove(removed)
    world.put(item("unseen", "Was never noticed."))
    world.path.pump()
    world.path.queues["arn:aws:sqs:us-east-1:123456789012:mats-changes"].messages.clear()  # and so they are lost

    (output,) = world.night()
    assert output["counts"] == {"compared": 4, "sent": 3, "reindexed": 0, "orphans": 0, "purged": 0, "given_up": 0}
    world.settle()
    assert _findable(world) == {kept, lost, "com.acme/unseen"}
    assert (world.profile(lost) or {})["enrichment"]["summary"] == "Does something new."
    assert world.night()[0]["counts"]["sent"] == 0


def test_a_new_index_is_made_and_gone_back_from_and_retired(world: World) -> None:
    ids = _registered(world, 3)
    assert world.maintain("reindex")["index"] == "capabilities-2"
    assert _findable(world) == ids
    assert world.maintain("rollback")["index"] == "capabilities-1"
    with pytest.raises(ExecutionFailed, match="no index before"):
        world.maintain("rollback")
    assert world.execution.retried == 0
    assert world.maintain("reindex")["index"] == "capabilities-3"


def test_a_backfill_is_sent_at_a_rate_and_waits_outside_the_function(world: World) -> None:
    ids = [world.put(item(f"tool-{n}", f"Handles item{n} well.")) for n in range(3)]
    output = world.maintain("backfill", per_minute=1)
    assert (output["done"], output["counts"]["sent"]) == (True, 3)
    world.path.run(world.enrich)
    assert all((world.profile(id) or {})["enriched"] for id in ids)
    assert world.maintain("backfill")["counts"]["sent"] == 0


def test_a_piece_that_dies_or_meets_a_service_that_fails_is_tried_again(made: Make) -> None:
    world = made(timeout_s=60)
    ids = _registered(world, 10)
    world.drop_indices()
    world.repair.weather = nth(3, Refuse(500, "InternalServerError"), service="opensearch")
    world.deployed()
    assert world.execution.retried > 0
    assert _findable(world) == ids

    world.repair.weather = every(Refuse(500, "InternalServerError"), service="opensearch")
    with pytest.raises(ExecutionFailed, match="DependencyFailed"):
        world.night()
    world.repair.weather = None


def test_what_was_erased_stays_away_whatever_comes_late(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    credentials(monkeypatch, dynamodb=world.servers.dynamodb)
    secret = world.put(item("secret", "Keeps the secret ledger."))
    other = world.publish(item("other", "Handles something else."))
    world.maintain("reindex")  # so that two indices have it
    world.put(item("secret", "Keeps the secret ledger.", version="2"))
    world.trust(secret, 40)
    world.settle()
    tables = Tables(region=REGION)
    profiles = DynamoProfiles(tables, world.table("Profiles"))

    def settle(id: Id) -> None:
        entry = {"Source": "mats.maintenance", "DetailType": "CapabilityChanged", "EventBusName": "mats"}
        namespace, name = parts(id)
        keys = {"namespace": {"S": namespace}, "name": {"S": name}}
        world.path.put_events([{**entry, "Detail": json.dumps({"keys": keys})}])
        world.settle()

    erase = Erase(
        registry=DynamoRegistry(tables, world.table("Registry")), trust=DynamoTrust(tables, world.table("Trust")),
        profiles=profiles, clock=SystemClock(), ids=fresh_id, settle=settle,
    )  # fmt: skip
    late = profiles.get([Id(secret)])[Id(secret)]
    assert erase.traces(Id(secret)) == Traces(True, True, Status.ACTIVE, late.profile.rev - 1)
    assert erase(Id(secret)) == late.profile.rev

    domain = Domain(world.servers.opensearch, region=REGION, read_s=10)
    for number in (1, 2):  # a run that had saved the content before, and indexes it only now
        target = Target(f"capabilities-{number}", late.profile.encoder)
        OpenSearchIndex(domain, lambda target=target: [target], encoder=target.encoder).put([late])  # type: ignore[misc]
    world.path.repeat(30)
    world.settle()
    world.night()
    world.settle()
    rows = tables.all_rows(world.table("Profiles"), "scan")
    assert "ledger" not in json.dumps([from_row(row) for row in rows], default=str)
    for number in (1, 2):
        index, every = f"capabilities-{number}", {"size": 100, "query": {"match_all": {}}}
        found = domain.search(lambda response: response["hits"]["hits"], index, every)
        assert "ledger" not in json.dumps(found)
        assert {hit["_source"]["id"]: hit["_source"]["findable"] for hit in found} == {secret: False, other: True}
    assert world.discover("keeps the secret ledger").ids == [other]
    assert "expires_at" in (world.profile(secret) or {})
