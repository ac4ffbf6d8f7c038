"""The deadline of a run, and that no path of a batch passes it."""

import math
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.sizes import ENRICHMENT_TIMEOUT_S
from mats.adapters import aws, eventbridge
from mats.adapters.dynamodb import tables
from mats.adapters.opensearch import domain
from mats.domain.capability.capability import Id
from mats.domain.errors import OutOfTime
from mats.domain.profile.profile import ChangeResult
from mats.settings import ENRICHED_AT_ONCE
from mats.usecases.deadline import FULL_S, NO_DEADLINE, READ_S, SAVE_S, Deadline
from tests.builders import a_registration
from tests.fakes import FakeClock, FakeEncoder
from tests.world import World, a_writer

FUNCTION_S, BATCH = ENRICHMENT_TIMEOUT_S, ENRICHED_AT_ONCE


def test_a_step_starts_only_if_it_fits():
    deadline = Deadline(lambda: 5_000)
    assert (deadline.allows(5), deadline.allows(5.001), deadline.wait_s(3), deadline.wait_s(9)) == (True, False, 2, 0)
    assert (NO_DEADLINE.allows(math.inf), NO_DEADLINE.wait_s(9)) == (True, None)


def test_a_run_too_short_for_the_longest_steps_starts_them_in_proportion():
    assert Deadline.of(lambda: 1000 * FULL_S).scale == Deadline.of(lambda: math.inf).scale == 1
    short = Deadline.of(lambda: 1000 * FULL_S / 10)
    assert (short.scale, short.allows(READ_S + SAVE_S), short.allows(FULL_S + 1)) == (0.1, True, False)
    assert short.wait_s(SAVE_S) == pytest.approx((FULL_S - SAVE_S) / 10)


def test_a_call_that_hangs_is_abandoned_with_the_reserve_left():
    released = threading.Event()
    with pytest.raises(OutOfTime):
        Deadline(lambda: 5_000).call(released.wait, reserve_s=5)
    released.set()


def test_a_call_in_time_gives_its_result_or_raises_its_own_error():
    deadline = Deadline(lambda: 60_000)
    assert deadline.call(lambda: 7, reserve_s=1) == 7
    with pytest.raises(ZeroDivisionError):
        deadline.call(lambda: 1 / 0, reserve_s=1)
    with pytest.raises(TimeoutError, match="own"):
        deadline.call(_time_out, reserve_s=1)


def _time_out() -> None:
    raise TimeoutError("own")


@dataclass
class VirtualThreads(Executor):
    """Threads of virtual time: each call ends after the next of these durations in seconds."""

    clock: FakeClock
    durations_s: list[float]
    running: list[tuple[float, Callable[[], Any], "Future[Any]"]] = field(default_factory=list)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self.running.append((self.clock.ms + 1000 * self.durations_s.pop(0), lambda: fn(*args, **kwargs), future))
        return future

    def finish_next(self, until_ms: float) -> None:
        """Advance to the end of the first call, or to a time before it."""
        ending = min(self.running, key=lambda call: call[0], default=None)
        if ending is None or ending[0] > until_ms:
            self.clock.ms = max(self.clock.ms, until_ms)
            return
        self.running.remove(ending)
        self.clock.ms = max(self.clock.ms, ending[0])
        ending[2].set_result(ending[1]())


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualDeadline(Deadline):
    """Waits and calls take virtual time."""

    clock: FakeClock
    threads: VirtualThreads
    encode_s: float

    def wait_s(self, reserve_s: float) -> float:
        self.threads.finish_next(self.clock.ms + max(0.0, self.left_ms() - 1000 * reserve_s))
        return 0.0

    def call(self, work: Callable[[], Any], *, reserve_s: float) -> Any:
        limit_s = max(0.0, self.left_ms() / 1000 - reserve_s)
        self.clock.ms += 1000 * min(self.encode_s, limit_s)
        if self.encode_s > limit_s:
            raise OutOfTime("up")
        return work()


def run_batch(
    *, read_s: float, save_s: float, encode_s: float, replies_s: list[float]
) -> tuple[float, dict[Id, ChangeResult], World]:
    """Seconds and outcomes of a batch of new registrations whose steps take this long."""
    clock = FakeClock()
    threads = VirtualThreads(clock, list(replies_s))
    world = World(encoder=FakeEncoder(), writer=a_writer())
    world.registry.put([a_registration(name=f"pay-{n}") for n in range(BATCH)])
    read, save = world.registry.get, world.profiles.save

    def slow_read(ids):
        clock.ms += 1000 * read_s
        return read(ids)

    def slow_save(changes):
        clock.ms += 1000 * save_s
        return save(changes)

    world.registry.get, world.profiles.save = slow_read, slow_save
    enrich = replace(world.enrich, writer_threads=threads)
    deadline = VirtualDeadline(lambda: 1000 * FUNCTION_S - clock.ms, clock=clock, threads=threads, encode_s=encode_s)
    outcomes = dict(enrich([world.change(id) for id in world.registry.ids()], deadline))
    return clock.ms / 1000, outcomes, world


@given(
    read_s=st.floats(0, READ_S),
    save_s=st.floats(0, SAVE_S),
    encode_s=st.floats(0, 1_000),
    replies_s=st.lists(st.floats(0, 1_000), min_size=BATCH, max_size=BATCH),
)
def test_no_path_of_a_batch_passes_the_timeout_of_the_function(read_s, save_s, encode_s, replies_s):
    seconds, outcomes, world = run_batch(read_s=read_s, save_s=save_s, encode_s=encode_s, replies_s=replies_s)
    assert seconds <= FUNCTION_S + 1e-6
    assert outcomes.keys() == set(world.registry.ids())
    for id, outcome in outcomes.items():
        assert not outcome.is_final or world.profile(id).enriched


def test_hung_models_leave_raw_profiles_and_hand_the_changes_back():
    seconds, outcomes, world = run_batch(read_s=1, save_s=1, encode_s=1, replies_s=[math.inf] * BATCH)
    assert set(outcomes.values()) == {ChangeResult.POSTPONED}
    assert all(world.profile(id).indexed_rev == 1 for id in outcomes)
    assert seconds == pytest.approx(FUNCTION_S - SAVE_S)


def test_the_longest_steps_are_what_the_timeouts_of_the_clients_add_up_to():
    backoff_s = sum(2**n for n in range(tables.ATTEMPTS - 1))
    dynamodb_s = tables.ATTEMPTS * (aws.CONNECT_S + tables.TIMEOUT_S) + backoff_s
    unprocessed_s = sum(tables.FIRST_WAIT_S * 2**n for n in range(tables.BATCH_ATTEMPTS))
    assert 3 * (dynamodb_s + unprocessed_s) <= READ_S
    announce_s = eventbridge.ATTEMPTS * (aws.CONNECT_S + eventbridge.TIMEOUT_S) + backoff_s
    targets_s, transaction_s, mark_s = dynamodb_s, dynamodb_s, dynamodb_s
    two_indices_s = 2 * (aws.CONNECT_S + domain.WRITE_S)
    assert announce_s + transaction_s + targets_s + two_indices_s + mark_s <= SAVE_S
    assert READ_S + SAVE_S + 30 == FULL_S < FUNCTION_S
