"""Reconcile over fakes: differences are repaired."""

from mats.domain.capability.capability import Id
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.profile import Status
from mats.domain.search.query import Filter
from mats.usecases.reconcile import Reconcile
from tests.builders import a_registration
from tests.fakes import CountingIds, FakeClock, FakeEncoder
from tests.world import World

PAY = a_registration(name="pay", description="Sends money")


def repair(world: World, *, time: str = "2026-01-01T00:00:00+00:00"):
    reconcile = Reconcile(
        enrich=world.enrich,
        registry=world.registry,
        profiles=world.profiles,
        index=world.index,
        clock=FakeClock(time),
        ids=CountingIds(),
    )
    return list(reconcile(id for _, page in reconcile.pages() for id in page))


def healthy() -> World:
    world = World(encoder=FakeEncoder())
    world.register(PAY)
    return world


def in_step(world: World) -> bool:
    profile = world.profile(PAY.id)
    return world.found("money") == [PAY.id] and profile.rev == profile.indexed_rev


def test_consistent_capabilities_are_unchanged():
    world = healthy()
    (step,) = repair(world)
    assert (step.counts["reindexed"], step.counts["orphans"], step.counts["purged"]) == (0, 0, 0)
    assert world.profile(PAY.id).rev == 1


def test_a_lost_removal_is_made_up_for():
    world = healthy()
    world.registry.remove(PAY.id)
    repair(world)
    assert world.found("money") == []
    assert world.profile(PAY.id).status is Status.DELETED


def test_profiles_that_were_lost_come_back_from_the_registry():
    world = healthy()
    world.register(PAY.model_copy(update={"version": "2"}))
    world.profiles.kept.clear()
    (step,) = repair(world)
    assert step.counts["orphans"] == 1
    assert in_step(world)


def test_an_index_ahead_of_restored_profiles_is_brought_back_to_them():
    world = healthy()
    restored = dict(world.profiles.kept)
    for trust in (50, 100):
        world.trust.put(PAY.id, Assigned(trust=trust))
        world.deliver(PAY.id)
    world.trust.given.clear()
    world.profiles.kept = restored
    (step,) = repair(world)
    assert (step.counts["orphans"], step.counts["reindexed"]) == (1, 1)
    assert world.index.fetch([PAY.id])[PAY.id].trust is None
    (again,) = repair(world)
    assert (again.counts["orphans"], again.counts["reindexed"]) == (0, 0)


def test_an_entry_without_a_profile_is_removed():
    world = healthy()
    world.registry.items.clear()
    world.profiles.kept.clear()
    repair(world)
    assert not world.index.lexical(["money"], Filter(), depth=5)
    assert world.profiles.kept == {}


def test_tombstones_are_forgotten_after_a_week_and_not_before():
    world = healthy()
    world.registry.remove(PAY.id)
    world.deliver(PAY.id)
    repair(world, time="2026-01-07T23:00:00+00:00")
    assert world.index.revisions([PAY.id]) == {PAY.id: 2}
    repair(world, time="2026-01-09T00:00:00+00:00")
    assert list(world.index.ids()) == []
    (again,) = repair(world, time="2026-01-10T00:00:00+00:00")
    assert (again.counts["reindexed"], again.counts["purged"]) == (0, 0)


def test_repairs_are_made_page_by_page():
    world = World(encoder=FakeEncoder())
    world.registry.put([a_registration(name=f"tool-{n}") for n in range(130)])
    steps = repair(world)
    assert [len(step.outcomes) for step in steps] == [64, 64, 2]
    assert len(world.profiles.kept) == 130
    assert Id(f"{PAY.namespace}/tool-7") in world.index.entries
