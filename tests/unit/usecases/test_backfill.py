"""Backfill over fakes: only stale profiles, at a limited rate, resumable."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import ChangeResult, Status
from mats.ports import Written
from mats.usecases.backfill import Backfill
from mats.usecases.deadline import Progress
from tests.builders import a_registration
from tests.fakes import CountingIds, FakeClock, FakeEncoder, ScriptedWriter, raising
from tests.world import FIVE, World, a_writer

PAY = a_registration(name="pay", description="Sends money")


@dataclass
class Slept:
    """A clock that advances only during waits."""

    clock: FakeClock = field(default_factory=FakeClock)
    seconds: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        assert seconds >= 0
        self.seconds.append(seconds)
        self.clock.ms += 1000 * seconds


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


def a_backfill(world: World, slept: Slept | None = None, *, per_minute: int = 0, page: int = 64) -> Backfill:
    slept = slept or Slept()
    return Backfill(
        enrich=world.enrich, clock=slept.clock, ids=CountingIds(), pause=slept, per_minute=per_minute, page=page
    )


def everything(world: World) -> Iterable[Id]:
    return list(world.registry.ids())


def renewed(world: World, **how: int) -> list[Progress]:
    return list(a_backfill(world, **how)(everything(world)))


def test_a_current_profile_and_an_id_without_an_item_cause_no_call_no_write_and_no_wait():
    world, slept = a_world(50), Slept()
    before = dict(world.profiles.kept)
    writer, encoder = world.enrich.maker.writer, world.enrich.maker.encoder
    writer.asked.clear()
    encoder.encoded.clear()
    (step,) = a_backfill(world, slept, per_minute=1)([*everything(world), PAY.id])
    assert (step.counts, step.outcomes, slept.seconds) == ({"compared": 51, "sent": 0}, {}, [])
    assert (writer.asked, encoder.encoded, world.profiles.kept) == ([], [], before)


def test_everything_another_prompt_has_made_stale_is_renewed_once():
    world, slept = a_world(5), Slept()
    writer = with_another_prompt(world)
    steps = list(a_backfill(world, slept, page=2)(everything(world)))
    assert slept.seconds == []
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


@pytest.mark.parametrize(("per_minute", "count"), [(60, 30), (600, 130), (5, 7), (1, 2)])
def test_the_rate_per_minute_is_not_exceeded(per_minute, count):
    world, slept = a_world(count), Slept()
    writer = with_another_prompt(world)
    sent_at: list[float] = []
    writer.script = lambda registration: sent_at.append(slept.clock.ms) or Written(enrichment=FIVE)
    list(a_backfill(world, slept, per_minute=per_minute)(everything(world)))
    assert len(sent_at) == count
    room = max(1, per_minute // 10)
    for began in sent_at:
        assert sum(began <= at < began + 60_000 for at in sent_at) <= per_minute + room
    assert slept.clock.ms == pytest.approx(60_000 * count / per_minute)


def test_time_that_the_work_itself_took_is_not_waited_for_again():
    world, slept = a_world(10), Slept()
    writer = with_another_prompt(world)

    def slowly(registration):
        slept.clock.ms += 2_000
        return Written(enrichment=FIVE)

    writer.script = slowly
    list(a_backfill(world, slept, per_minute=60)(everything(world)))
    assert set(slept.seconds) == {0.0}


def test_unused_minutes_do_not_raise_the_rate_later():
    world, slept = a_world(20), Slept()
    writer = with_another_prompt(world)
    sent_at: list[float] = []
    writer.script = lambda registration: sent_at.append(slept.clock.ms) or Written(enrichment=FIVE)
    ids = everything(world)

    def after_an_hour_of_others():
        for _ in range(64):
            slept.clock.ms += 60_000
            yield PAY.id
        yield from ids

    list(a_backfill(world, slept, per_minute=10)(after_an_hour_of_others()))
    assert sent_at == pytest.approx([sent_at[0] + 6_000 * n for n in range(20)])
