"""Stages wait no longer than their budget, which counts from their start."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.errors import OutOfTime
from mats.domain.search.trace import Trace
from mats.usecases.stages import CircuitBreaker, Stage, Stages
from tests.fakes import AtOnce, FakeClock


def opened(failures: int = 3, rest_ms: float = 1_000) -> CircuitBreaker:
    breaker = CircuitBreaker(failures=failures, rest_ms=rest_ms)
    for _ in range(failures):
        breaker.record_failure(0)
    return breaker


def test_late_failures_of_calls_under_way_do_not_put_off_the_probe():
    breaker = opened()
    breaker.record_failure(900)
    assert breaker.allows_call(1_000)


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 6))
def test_it_is_open_exactly_while_the_last_calls_all_failed(answers, failures):
    breaker = CircuitBreaker(failures=failures, rest_ms=1_000)
    for answer in answers:
        if answer:
            breaker.record_success()
        else:
            breaker.record_failure(0)
    assert breaker.allows_call(0) is (len(answers) < failures or any(answers[-failures:]))


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=40).map(sorted))
def test_unanswered_probes_continue_with_at_least_a_rest_between_them(asked):
    breaker = opened()
    probes = [now for now in asked if breaker.allows_call(now)]
    assert all(later - earlier >= 1_000 for earlier, later in pairwise([0, *probes]))
    assert breaker.allows_call(asked[-1] + 1_000)


def test_every_rest_has_one_probe_however_many_threads_ask():
    breaker = opened()
    with ThreadPoolExecutor(16) as pool:
        for now in (1_000.0, 2_000.0, 3_000.0):
            assert sum(pool.map(breaker.allows_call, [now] * 100)) == 1
        breaker.record_success()
        assert sum(pool.map(breaker.allows_call, [3_001.0] * 100)) == 100


class LateFuture:
    """Never has a result; records the timeout in seconds, and whether it was cancelled."""

    def __init__(self) -> None:
        self.timeout: float | None = None
        self.cancelled = False

    def result(self, timeout: float) -> object:
        self.timeout = timeout
        raise TimeoutError

    def cancel(self) -> None:
        self.cancelled = True


@pytest.mark.parametrize(("elapsed_ms", "timeout_s"), [(0, 0.4), (150, 0.25), (400, 0.0), (5_000, 0.0)])
def test_a_stage_waits_for_the_rest_of_its_budget_only(elapsed_ms, timeout_s):
    future = LateFuture()
    stages = Stages(clock=FakeClock(ms=1_000 + elapsed_ms), executor=AtOnce(), models={})
    stage = Stage("encode", 400, 1_000, future, stages.begin(Trace(index="i")), None)
    with pytest.raises(OutOfTime, match="encode took longer than 400 ms"):
        stage.result()
    assert future.timeout == pytest.approx(timeout_s)
    assert future.cancelled
