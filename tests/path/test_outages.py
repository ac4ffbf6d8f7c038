"""An outage of what the event path needs: nothing is lost or a dead letter, and everything is done after it."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.aws.recorder import Act, Call, Play, Refuse, RefuseEntries
from tests.path.world import World, item

pytestmark = pytest.mark.server

AN_OUTAGE = timedelta(minutes=75)


def until(world: World, length: timedelta, act: Act, service: str) -> Play:
    """Calls of a service fail for so long, on the clock of the path."""
    end = world.path.clock.now() + length
    return lambda call: act if call.service == service and world.path.clock.now() < end else None


def published(world: World) -> list[Mapping[str, Any]]:
    ids = [world.put(item(f"item-{number}", f"Handles item{number}.")) for number in range(13)]
    world.settle()
    return [world.profiles()[id] for id in ids]


@pytest.mark.parametrize(("service", "code"), [("bedrock", "ThrottlingException"), ("events", "InternalFailure")])
def test_an_import_during_an_outage_of_more_than_an_hour_ends_well(world: World, service: str, code: str) -> None:
    status = 429 if code == "ThrottlingException" else 500
    world.weather(until(world, AN_OUTAGE, Refuse(status, code), service))
    assert all(profile["enriched"] and profile["encoder"] for profile in published(world))
    assert world.path.waiting() == {}


def test_a_bus_that_refuses_single_events_has_each_of_them_once_in_the_end(world: World) -> None:
    end = world.path.clock.now() + AN_OUTAGE

    def play(call: Call) -> Act | None:
        refuses = call.service == "events" and world.path.clock.now() < end
        return RefuseEntries(("item-3", "item-7")) if refuses else None

    world.streams.weather = play
    assert all(profile["enriched"] for profile in published(world))
    assert world.path.waiting() == {}
    arrived = [event["detail"]["keys"]["name"]["S"] for event in world.path.events]
    assert (arrived.count("item-3"), arrived.count("item-7"), len(set(arrived))) == (1, 1, 13)
