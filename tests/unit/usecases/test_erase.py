"""Erasing over fakes: nothing stays but a tombstone, whatever is under way."""

import pytest

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.profile import Cause, Status
from mats.ports import Change
from mats.usecases.erase import Erase, Traces
from tests.builders import a_registration
from tests.fakes import CountingIds, FakeClock, FakeEncoder
from tests.world import World

SECRET = a_registration(name="secret", description="Tells of a secret ledger")
CAUSE = Cause(event_id="e", time="2026-01-01T00:00:00+00:00")


def an_erase(world: World, settle=None) -> Erase:
    return Erase(
        registry=world.registry, trust=world.trust, profiles=world.profiles, clock=FakeClock(), ids=CountingIds(),
        settle=settle or (lambda id: world.enrich([Change(id, CAUSE)])),
    )  # fmt: skip


def a_world(*, changes: int = 3) -> World:
    world = World(encoder=FakeEncoder())
    for version in range(1, changes + 1):
        world.register(SECRET.model_copy(update={"version": str(version)}))
    world.trust.put(SECRET.id, Assigned(trust=40))
    world.deliver(SECRET.id)
    return world


def everything(world: World) -> str:
    """All that is stored, as text."""
    stores = (world.registry.items, world.trust.given, world.profiles.kept, world.profiles.earlier, world.index.entries)
    return repr(stores)


def test_every_trace_is_told_and_erased():
    world = a_world()
    erase = an_erase(world)
    assert erase.traces(SECRET.id) == Traces(True, True, Status.ACTIVE, 3)
    assert erase(SECRET.id) == 4
    assert erase.traces(SECRET.id).is_gone
    assert world.found("ledger") == []
    assert "ledger" not in everything(world)
    assert erase(SECRET.id) == 0


def test_late_events_bring_nothing_back():
    world = a_world()
    an_erase(world)(SECRET.id)
    for _ in range(2):
        world.deliver(SECRET.id)
    assert "ledger" not in everything(world)


@pytest.mark.parametrize("changes", [0, 1, 3])
def test_a_run_that_holds_the_content_cannot_write_it_any_more(changes: int):
    world = a_world(changes=changes) if changes else World(encoder=FakeEncoder())
    world.registry.put([SECRET.model_copy(update={"version": "late"})])
    save, under_way = world.profiles.save, []

    def erased_meanwhile(entries):
        if not under_way:
            under_way.append(entries)
            an_erase(world)(SECRET.id)
        return save(entries)

    world.profiles.save = erased_meanwhile  # the content was read, and is about to be saved
    world.deliver(SECRET.id)
    assert under_way
    assert "ledger" not in everything(world)
    world.index.put(under_way[0])  # and one that had saved it is about to index it
    assert world.found("ledger") == []
    assert "ledger" not in everything(world)


def test_what_never_settles_or_is_registered_meanwhile_is_said_and_keeps_its_versions():
    world = a_world()
    with pytest.raises(DependencyFailed, match="run it again"):
        an_erase(world, settle=lambda id: None)(SECRET.id)

    def registered_again(id: Id) -> None:
        world.register(SECRET)

    with pytest.raises(DependencyFailed, match="registered again"):
        an_erase(world, settle=registered_again)(SECRET.id)
    assert world.found("ledger") == [SECRET.id]
    assert an_erase(world)(SECRET.id) > 0
    assert "ledger" not in everything(world)
