"""Every call of the functions against what the templates allow: their roles, and the domain's own policy."""

from collections.abc import Callable
from typing import Any

import pytest

from mats.adapters.dynamodb.tables import to_row
from tests.aws import iam
from tests.aws.deployment import ACCOUNT, texts
from tests.path.world import Environment, Make, World, item, rights_of

pytestmark = pytest.mark.server

REFUND = "Refunds a card payment in full or in part."


def test_maintenance_uses_every_right_that_it_has_and_lacks_none(world: World) -> None:
    gone = world.put(item("gone", REFUND))
    world.publish(item("refund_payment", REFUND))
    world.remove(gone)
    world.drop_indices()
    assert world.night()[0]["counts"]["sent"] == 1
    world.settle()
    world.dynamodb.delete_item(TableName=world.table("Profiles"), Key=to_row({"namespace": "com.acme", "name": "gone"}))
    assert world.night()[0]["counts"]["orphans"] == 1
    world.maintain("reindex")
    world.check()
    rights, _ = rights_of(world.deployment, world.deployment.one("AWS::Lambda::Function", "Maintenance"))
    granted = {action for one in rights for action in texts(one["Action"]) if one["Effect"] == "Allow"}
    assert _actions(world.repair) == {action for action in granted if action.split(":")[0] not in _NOT_OURS}


_NOT_OURS = ("logs", "kms", "xray")  # Services that Lambda itself calls with the rights of a function


def test_everything_both_functions_do_is_allowed_and_they_do_all_their_roles_are_for(world: World) -> None:
    _live(world)
    world.check()
    assert _actions(world.offline) == {
        "dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:Scan",
        "dynamodb:UpdateItem", "es:ESHttpPut", "es:ESHttpGet", "es:ESHttpPost", "bedrock:InvokeModel",
        "events:PutEvents",
    }  # fmt: skip
    assert _actions(world.online) == {
        "dynamodb:GetItem", "dynamodb:PutItem", "es:ESHttpPost", "bedrock:InvokeModel",
    }  # fmt: skip


def test_first_indexing_makes_the_index_with_its_alias_within_the_role(world: World) -> None:
    world.publish(item("refund_payment", REFUND))
    calls = world.offline.recorder.calls
    assert [call.path for call in calls if call.method == "PUT"] == ["/capabilities-1"]
    assert {entry["id"] for entry in world.indexed()} == {"com.acme/refund_payment"}


def _without(action: str, kind: str = "AWS::IAM::Policy") -> Callable[[dict[str, Any]], None]:
    """Takes an action out of every policy of this kind."""

    def change(resources: dict[str, Any]) -> None:
        for resource in resources.values():
            if resource["Type"] != kind:
                continue
            document = resource["Properties"].get("PolicyDocument") or resource["Properties"]["AccessPolicies"]
            for statement in document["Statement"]:
                actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
                statement["Action"] = [each for each in actions if each != action] or ["none:None"]

    return change


def test_a_model_that_may_not_be_invoked_is_noticed_though_no_change_waits_for_it(made: Make) -> None:
    world = made(_without("bedrock:InvokeModel"))
    id = world.publish(item("refund_payment", REFUND))
    assert list(world.path.waiting()) == []
    assert [entry["id"] for entry in world.indexed()] == [id]
    profile = world.profile(id)
    assert profile is not None
    assert {refusal["role"] for refusal in profile["refused"]} == {"writer", "encoder"}
    assert all("AccessDeniedException" in refusal["cause"] for refusal in profile["refused"])
    answer = world.discover(REFUND)
    assert (answer.ids, answer.lacks) == ([id], ["llm", "neural"])
    with pytest.raises(AssertionError, match=r"may not.*bedrock:InvokeModel"):
        world.check()
    world.forgive()


def _live(world: World) -> None:
    """Everything the functions do, at least once."""
    id = world.put(item("refund_payment", REFUND))
    world.put({"namespace": "com.acme", "name": "bad", "kind": "toool"})
    world.trust(id, 50)
    world.trust_namespace("com.acme", trust=20)
    world.settle()
    clerk = f"arn:aws:sts::{ACCOUNT}:assumed-role/Clerk/session"
    assert world.discover("refund a card payment", caller=clerk, kinds=["tool"], explain=True).ids == [id]
    assert world.look_up(id).status == 200
    assert world.ask("GET", "/healthz").status == 200
    world.remove(id)
    world.settle()


def _actions(environment: Environment) -> set[str]:
    return {action for action, _ in environment.recorder.needs}


def test_enrichment_cannot_say_which_indices_are_written_to(world: World) -> None:
    rights = world.offline.rights
    profiles = world.deployment.one("AWS::DynamoDB::Table", "Profiles").arn
    for action in ("PutItem", "UpdateItem"):
        assert iam.allowed(rights, f"dynamodb:{action}", profiles, {"dynamodb:LeadingKeys": ("com.acme", "versions#1")})
        for keys in (("~system",), ("com.acme", "~system")):
            assert not iam.allowed(rights, f"dynamodb:{action}", profiles, {"dynamodb:LeadingKeys": keys})
    assert iam.allowed(world.repair.rights, "dynamodb:PutItem", profiles, {"dynamodb:LeadingKeys": ("~system",)})


def test_the_first_index_is_written_before_it_is_recorded_and_maintenance_records_it(world: World) -> None:
    id = world.publish(item("tool", "Handles items."))
    assert [entry["id"] for entry in world.indexed()] == [id]
    key = {"namespace": {"S": "~system"}, "name": {"S": "targets"}}
    read = {"TableName": world.table("Profiles"), "Key": key, "ConsistentRead": True}
    assert "Item" not in world.dynamodb.get_item(**read)
    world.night()
    row = world.dynamodb.get_item(**read)["Item"]
    assert row["targets"]["L"][0]["M"]["name"] == {"S": "capabilities-1"}
    other = world.publish(item("other", "Handles others."))
    assert {entry["id"] for entry in world.indexed()} == {id, other}
