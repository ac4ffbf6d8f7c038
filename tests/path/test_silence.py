"""A service that is silent: what a run leaves to the next one, and what an answer lacks."""

import pytest

from tests.aws.calls import Service
from tests.aws.recorder import Stall, every, nth
from tests.path.world import Make, World, item

pytestmark = pytest.mark.server


@pytest.mark.parametrize(("service", "operation"), [("dynamodb", None), ("bedrock", "converse")])
def test_a_run_that_is_out_of_time_because_a_service_is_silent_is_made_good_by_the_next(
    made: Make, service: Service, operation: str | None
) -> None:
    world = made(timeout_s=4)
    ids = [world.put(item(f"item-{number}", f"Handles item{number}.")) for number in range(3)]
    world.weather(every(Stall(60), service=service, operation=operation))
    world.path.pump()
    world.path.deliver(world.enrich)
    assert list(world.path.waiting()) == ["mats-changes"]
    assert (world.offline.function.pid is None) is (service != "bedrock")  # it hands back what waits for a model
    if service == "bedrock":
        world.refresh()
        assert {entry["id"] for entry in world.indexed()} == set(ids)

    world.weather(None)
    world.settle()
    assert world.path.waiting() == {}
    assert all((world.profile(id) or {})["enriched"] for id in ids)


def test_one_silent_call_to_a_table_is_asked_again_in_the_same_run(world: World) -> None:
    id = world.put(item("refund_payment", "Refunds a card payment."))
    world.offline.weather = nth(2, Stall(60), service="dynamodb")
    world.path.pump()
    world.path.deliver(world.enrich)
    assert world.path.waiting() == {}
    assert (world.profile(id) or {})["enriched"] is True


@pytest.mark.parametrize(
    ("service", "status", "degraded"),
    [
        ("bedrock", 200, ["llm", "neural"]),
        ("dynamodb", 200, ["audiences", "receipt"]),
        ("opensearch", 503, None),
    ],
)
def test_while_a_service_is_silent_an_answer_says_what_it_lacks(
    world: World, service: Service, status: int, degraded: list[str] | None
) -> None:
    id = world.publish(item("refund_payment", "Refunds a card payment."))
    world.online.weather = every(Stall(60), service=service)
    reply = world.discover("refunds a card payment")
    assert reply.status == status, reply.content
    if degraded is None:
        assert reply.headers["Retry-After"] == "1"
    else:
        assert reply.ids == [id]
        assert {*degraded} <= {*reply.content["degraded"]} <= {*degraded, "receipt"}  # late on a busy machine
    world.online.weather = None
    assert world.discover("refunds a card payment").ids == [id]
