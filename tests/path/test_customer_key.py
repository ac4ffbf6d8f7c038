"""The account with a key of one's own: whoever reads a table or its stream needs the right to decrypt."""

from typing import Any

import pytest

from tests.infra.synth import OWN_KEY
from tests.path.test_feedback import ANN, receipt
from tests.path.world import Make, item

pytestmark = pytest.mark.server


def test_registrations_answers_and_outcomes_take_their_way(made: Make) -> None:
    world = made(context=OWN_KEY)
    ids = [world.put(item(f"tool-{n}", f"Handles item{n} well.")) for n in range(3)]
    world.trust(ids[0], 80)
    world.settle()
    answer = world.discover("item1", caller=ANN).content
    assert answer["results"][0]["id"] == ids[1]
    receipt(world, answer["query_id"])
    body = {"query_id": answer["query_id"], "outcomes": [{"id": ids[1], "event": "succeeded"}]}
    assert world.ask("POST", "/feedback", body, caller=ANN).status == 202
    world.settle()
    assert [memory["used"] for memory in world.memory()] == [[ids[1]]]
    assert world.night()[0]["counts"]["sent"] == 0


def _without_key(of: str) -> Any:
    """A change of the templates that takes the rights to the key from policies and roles with this in their id."""

    def change(resources: dict[str, Any]) -> None:
        for id, resource in resources.items():
            if of not in id:
                continue
            about = resource.get("Properties", {})
            for policy in [about, *about.get("Policies", [])]:
                if document := policy.get("PolicyDocument"):
                    document["Statement"] = [
                        each for each in document["Statement"] if "kms:" not in str(each["Action"])
                    ]

    return change


def test_a_function_without_the_right_to_the_key_is_noticed(made: Make) -> None:
    world = made(_without_key("Enrichment"), context=OWN_KEY)
    world.publish(item("tool", "Handles items."))
    assert world.profiles() == {}
    assert any("kms:Decrypt" in each for each in world.offline.denied)
    world.forgive()
