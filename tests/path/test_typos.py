"""A misspelt setting of a function ends in a dead letter, a refusal, or an answer that says what is missing."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.path.world import Make, item

pytestmark = pytest.mark.server

Resources = dict[str, Any]
Change = Callable[[Resources], object]

REFUND = "Refunds a card payment in full or in part."


def _of(resources: Resources, type: str, containing: str = "") -> dict[str, Any]:
    """The properties of the one resource of this type with these letters in its id."""
    (found,) = [each for id, each in resources.items() if each["Type"] == type and containing in id]
    properties: dict[str, Any] = found["Properties"]
    return properties


def _variables(resources: Resources, function: str) -> dict[str, Any]:
    variables: dict[str, Any] = _of(resources, "AWS::Lambda::Function", function)["Environment"]["Variables"]
    return variables


def _renamed(function: str, variable: str) -> Change:
    def change(resources: Resources) -> None:
        variables = _variables(resources, function)
        variables[f"{variable}S"] = variables.pop(variable)

    return change


def _set(function: str, variable: str, wrong: str) -> Change:
    return lambda resources: _variables(resources, function).update({variable: wrong})


@pytest.mark.parametrize(
    "change",
    [
        _set("Enrichment", "MATS_PROFILES_TABLE", "mats-profile"),
        _set("Enrichment", "MATS_BEDROCK", "on"),
    ],
    ids=["the name of a table", "a value"],
)
def test_a_wrong_setting_of_enrichment_leaves_the_messages_in_the_dead_letter_queue(made: Make, change: Change) -> None:
    world = made(change)
    id = world.publish(item("refund_payment", REFUND))
    assert list(world.path.waiting()) == ["mats-enrichment-dead"]
    assert not (world.profile(id) or {}).get("enriched")
    world.forgive()


def test_an_encoder_that_does_not_exist_is_named_in_the_profile_and_leaves_no_dead_letter(made: Make) -> None:
    world = made(_set("Enrichment", "MATS_ENCODER", "amazon.titan-embed-text-v2:1"))
    id = world.publish(item("refund_payment", REFUND))
    assert world.path.waiting() == {}
    refused = (world.profile(id) or {})["refused"]
    assert [(refusal["role"], refusal["model"]) for refusal in refused] == [("encoder", "amazon.titan-embed-text-v2:1")]
    world.forgive()


@pytest.mark.parametrize(
    ("variable", "wrong", "signal"),
    [
        ("MATS_ENCODER", "amazon.titan-embed-text-v2:1", "neural"),
        ("MATS_RERANK_MODEL", "amazon.nova-macro-v1:0", "llm"),
        ("MATS_CALLERS_TABLE", "mats-caller", "audiences"),
    ],
)
def test_a_wrong_setting_of_discovery_is_refused_and_its_answers_say_what_they_lack(
    made: Make, variable: str, wrong: str, signal: str
) -> None:
    world = made(_set("Discovery", variable, wrong))
    world.publish(item("refund_payment", REFUND))
    assert signal in world.discover("refund a card payment").content["degraded"]
    with pytest.raises(AssertionError, match=wrong):
        world.check()
    world.forgive()


def test_without_the_table_of_callers_nobody_is_admitted(made: Make) -> None:
    world = made(_renamed("Discovery", "MATS_CALLERS_TABLE"))
    world.put(item("refund_payment", REFUND, visible_to=["finance"]))
    world.admit("arn:aws:iam::123456789012:role/Clerk", "finance")
    world.settle()
    clerk = "arn:aws:sts::123456789012:assumed-role/Clerk/session"
    assert world.discover("refund a card payment", caller=clerk).ids == []
