"""Backfill over fakes: only stale profiles, resumable."""

from collections.abc import Iterable

import pytest

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import ChangeResult, Status
from mats.usecases.backfill import Backfill
from mats.usecases.deadline import Progress
from tests.builders import a_registration
from tests.fakes import CountingIds, FakeClock, FakeEncoder, ScriptedWriter, raising
from tests.world import World, a_writer

PAY = a_registration(name="pay", description="Sends money")


def a_world(count: int) -> World:
    """A number of enriched capabilities."""
    world = World(encoder=FakeEncoder(), writer=a_writer())
    for n in range(count):
        world.register(a_registration(name=f"tool-{n:03}"))
    return world


def with_another_prompt(world: World) -> ScriptedWriter:
    writer = a_writer(prompt="prompt-2")
    world.use(writer=writer)
    return writer


def a_backfill(world: World, page: int = 64) -> Backfill:
    return Backfill(enrich=world.enrich, clock=FakeClock(), ids=CountingIds(), page=page)


def everything(world: World) -> Iterable[Id]:
    return list(world.registry.ids())


def renewed(world: World, **how: int) -> list[Progress]:
    return list(a_backfill(world, **how)(everything(world)))


def test_a_current_profile_and_an_id_without_an_item_cause_no_call_and_no_write():
    world = a_world(50)
    before = dict(world.profiles.kept)
    writer, encoder = world.enrich.maker.writer, world.enrich.maker.encoder
    writer.asked.clear()
    encoder.encoded.clear()
    (step,) = a_backfill(world)([*everything(world), PAY.id])
    assert (step.counts, step.outcomes) == ({"compared": 51, "sent": 0}, {})
    assert (writer.asked, encoder.encoded, world.profiles.kept) == ([], [], before)


def test_everything_another_prompt_has_made_stale_is_renewed_once():
    world = a_world(5)
    writer = with_another_prompt(world)
    steps = list(a_backfill(world, page=2)(everything(world)))
    assert [step.counts["compared"] for step in steps] == [2, 2, 1]
    outcomes = {id: outcome for step in steps for id, outcome in step.outcomes.items()}
    assert outcomes == dict.fromkeys(everything(world), ChangeResult.INDEXED)
    assert sorted(writer.asked) == everything(world)
    assert not any(step.outcomes for step in renewed(world))
    assert sorted(writer.asked) == everything(world)


def test_a_rejected_item_is_not_sent_again_and_one_mended_since_is():
    world = a_world(1)
    (id,) = everything(world)
    good = world.registry.items[id]
    world.registry.items[id] = {**good, "tags": 5}
    world.deliver(id)
    assert renewed(world) == [Progress({"compared": 1, "sent": 0}, id, outcomes={})]
    world.registry.items[id] = good
    (step,) = renewed(world)
    assert step.outcomes == {id: ChangeResult.INDEXED}
    assert world.profile(id).status is Status.ACTIVE


def test_after_a_store_failure_it_resumes(monkeypatch: pytest.MonkeyPatch):
    world = a_world(6)
    writer = with_another_prompt(world)
    steps = a_backfill(world, page=2)(everything(world))
    next(steps)
    with monkeypatch.context() as patched:
        patched.setattr(world.profiles, "save", raising(DependencyFailed("the table did not answer")))
        with pytest.raises(DependencyFailed, match="table"):
            list(steps)
    asked = len(set(writer.asked))
    rest = renewed(world, page=2)
    assert sum(len(step.outcomes) for step in rest) == 4
    assert asked < 6
    assert a_backfill(world).stale(everything(world)) == []
