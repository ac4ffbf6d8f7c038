"""A function that dies between any two writes leaves nothing that the next delivery does not mend."""

import itertools
from collections.abc import Callable

import pytest

from tests.aws.recorder import Hook, nth
from tests.path.world import World, item

pytestmark = [pytest.mark.server, pytest.mark.long(slice="kills")]

Step = Callable[[World, str], object]

BEFORE = "Refunds a card payment in full or in part."
AFTER = "Cancels subscriptions at the end of their term."


def _put(world: World, name: str) -> None:
    world.put(item(name, AFTER))


def _put_bad(world: World, name: str) -> None:
    world.put({"namespace": "com.acme", "name": name, "kind": "toool", "description": AFTER})


def _remove(world: World, name: str) -> None:
    world.remove(f"com.acme/{name}")


def _trust(world: World, name: str) -> None:
    world.trust(f"com.acme/{name}", 40)


@pytest.mark.parametrize(
    ("there", "step", "expected"),
    [
        (False, _put, {"status": "active", "summary": AFTER}),
        (True, _put, {"status": "active", "summary": AFTER}),
        (True, _remove, {"status": "deleted"}),
        (True, _trust, {"status": "active", "summary": BEFORE, "trust": 40}),
        (False, _put_bad, {"status": "rejected"}),
        (True, _put_bad, {"status": "rejected", "summary": BEFORE}),
    ],
    ids=["new", "changed", "removed", "trusted", "bad", "turned bad"],
)
def test_killed_at_any_write_a_run_is_made_good_by_the_next(
    world: World, there: bool, step: Step, expected: dict[str, object]
) -> None:
    world.publish(item("first", "Makes the index."))
    writes = 0
    for number, after in ((number, after) for number in itertools.count(1) for after in (False, True)):
        name = f"n{number}-{'after' if after else 'before'}"
        if there:
            world.publish(item(name, BEFORE))
        step(world, name)
        killed = _settle_with_a_kill(world, number, after=after)
        _assert_is(world, name, expected)
        if not killed:
            break
        writes = number
    assert writes >= 3  # row, index, mark


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, 6), ids=["row", "index", "list of targets", "document", "mark"])
def test_killed_while_it_makes_the_first_index_a_run_is_made_good_by_the_next(
    world: World, number: int, after: bool
) -> None:
    _put(world, "first")
    assert _settle_with_a_kill(world, number, after=after)
    _assert_is(world, "first", {"status": "active", "summary": AFTER})
    assert world.discover("cancels subscriptions").ids == ["com.acme/first"]


def _settle_with_a_kill(world: World, number: int, *, after: bool) -> bool:
    """Whether there was such a write to be killed at."""
    environment = world.offline
    killed = []

    def kill() -> None:
        killed.append(number)
        environment.function.kill()

    environment.weather = nth(number, Hook(kill, after=after), writes=True)
    world.settle()
    environment.recorder.settle()
    environment.weather = None
    world.settle()
    assert world.path.waiting() == {}
    return bool(killed)


def _assert_is(world: World, name: str, expected: dict[str, object]) -> None:
    id = f"com.acme/{name}"
    profile = world.profile(id)
    assert profile is not None
    found = {**profile, "summary": profile["enrichment"]["summary"]}
    assert {key: found[key] for key in expected} == expected
    assert profile["indexed_rev"] == profile["rev"]
    entries = [entry for entry in world.indexed() if entry["id"] == id]
    assert [entry["rev"] for entry in entries] == [profile["rev"]]
    assert entries[0]["findable"] is ("summary" in expected)
    if profile["status"] == "rejected":
        heard = [event["detail"] for event in world.path.events if event["detail-type"] == "CapabilityRejected"]
        assert {"id": id, "error": profile["error"]} in heard
