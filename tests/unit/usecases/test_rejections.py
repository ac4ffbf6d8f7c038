"""Rejections are announced before they are saved, so that none is missed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import MAX_PROFILE_BYTES, ChangeResult, Profile, Status
from tests.builders import a_registration, an_item
from tests.fakes import FakeEncoder, raising
from tests.world import World

PAY = a_registration(name="pay", description="Sends money")
BAD = {**PAY.item(), "tags": 5}
OTHER = a_registration(name="other", description="Does other things")


@dataclass
class Listener:
    """Records announced rejections, each with its stored state at that moment."""

    world: World
    heard: list[tuple[Id, int]] = field(default_factory=list)
    kept_then: list[Status | None] = field(default_factory=list)
    deaf: bool = False

    def __call__(self, rejected: Sequence[Profile]) -> None:
        if self.deaf:
            raise DependencyFailed("the bus did not answer")
        for profile in rejected:
            before = self.world.profiles.kept.get(profile.id)
            self.heard.append((profile.id, profile.rev))
            self.kept_then.append(before.profile.status if before else None)


@pytest.fixture
def world() -> World:
    return World(encoder=FakeEncoder())


@pytest.fixture
def listener(world: World) -> Listener:
    listener = Listener(world)
    world.enrich = replace(world.enrich, on_reject=listener)
    return listener


def break_it(world: World) -> None:
    world.registry.items[PAY.id] = BAD


def test_a_rejection_is_announced_before_it_is_saved(world, listener):
    world.register(PAY)
    break_it(world)
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.REJECTED}
    assert (listener.heard, listener.kept_then) == ([(PAY.id, 2)], [Status.ACTIVE])
    assert world.profile(PAY.id).status is Status.REJECTED


def test_the_same_rejection_is_announced_once(world, listener):
    break_it(world)
    world.deliver(PAY.id)
    assert world.deliver(PAY.id, event="again") == {PAY.id: ChangeResult.UNCHANGED}
    assert listener.heard == [(PAY.id, 1)]


def test_ended_between_announcing_and_keeping_it_is_announced_again(world, listener, monkeypatch):
    break_it(world)
    with monkeypatch.context() as patched:
        patched.setattr(world.profiles, "save", raising(DependencyFailed("ended here")))
        with pytest.raises(DependencyFailed, match="ended here"):
            world.deliver(PAY.id)
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.REJECTED}
    assert listener.heard == [(PAY.id, 1), (PAY.id, 1)]


def test_an_unannounced_rejection_is_not_saved_and_is_retried(world, listener):
    said = []
    world.enrich = replace(world.enrich, on_wait=lambda id, error: said.append((id, str(error))))
    world.register(PAY)
    break_it(world)
    listener.deaf = True
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.DEGRADED}
    assert said == [(PAY.id, "the bus did not answer")]
    assert not ChangeResult.DEGRADED.is_final
    assert world.profile(PAY.id).status is Status.ACTIVE
    listener.deaf = False
    assert world.deliver(PAY.id) == {PAY.id: ChangeResult.REJECTED}
    assert listener.heard == [(PAY.id, 2)]


def test_a_failing_bus_does_not_delay_valid_registrations(world, listener):
    break_it(world)
    world.registry.put([OTHER])
    listener.deaf = True
    assert world.deliver(PAY.id, OTHER.id) == {PAY.id: ChangeResult.DEGRADED, OTHER.id: ChangeResult.INDEXED}
    assert PAY.id not in world.profiles.kept
    assert world.found("things") == [OTHER.id]


def test_an_unindexed_revision_is_indexed_after_the_announcement(world, listener):
    world.register(PAY)
    world.index.entries.clear()
    kept = world.profiles.kept[PAY.id]
    world.profiles.kept[PAY.id] = replace(kept, profile=kept.profile.model_copy(update={"indexed_rev": 0}))
    break_it(world)
    listener.deaf = True
    world.deliver(PAY.id)
    listener.deaf = False
    world.deliver(PAY.id)
    assert world.found("money") == [PAY.id]


def test_a_registration_too_long_for_a_profile_is_rejected_readably(world, listener):
    huge = tuple(f"{n:03}" + "\U0001f4b8" * 1_990 for n in range(40))
    item = an_item(name="huge", examples=list(huge), description="\U0001f4b8" * 15_000)
    registration = a_registration(name="huge", examples=huge, description=item["description"])
    assert world.register(registration) is ChangeResult.REJECTED
    profile = world.profile(registration.id)
    assert f"shorten it to fit {MAX_PROFILE_BYTES:,}" in profile.error
    assert len(profile.model_dump_json()) < 2_000
    assert listener.heard == [(registration.id, 1)]
