"""The circuit breaker: opening, probes, closing."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.usecases.stages import CircuitBreaker


def opened(failures: int = 3, rest_ms: float = 1_000) -> CircuitBreaker:
    breaker = CircuitBreaker(failures=failures, rest_ms=rest_ms)
    for _ in range(failures):
        breaker.record_failure(0)
    return breaker


def test_it_stays_closed_below_the_limit_of_consecutive_failures():
    breaker = CircuitBreaker(failures=3)
    for _ in range(2):
        breaker.record_failure(0)
    assert breaker.allows_call(0)
    breaker.record_failure(0)
    assert not breaker.allows_call(0)


def test_an_answer_in_between_starts_the_count_anew():
    breaker = CircuitBreaker(failures=2)
    for _ in range(5):
        breaker.record_failure(0)
        breaker.record_success()
    assert breaker.allows_call(0)


def test_after_a_rest_one_probe_passes_and_success_closes_it():
    breaker = opened()
    assert not breaker.allows_call(999)
    assert breaker.allows_call(1_000)
    assert not breaker.allows_call(1_000)
    breaker.record_success()
    assert breaker.allows_call(1_001)
    assert breaker.allows_call(1_001)


def test_a_probe_that_fails_means_another_rest():
    breaker = opened()
    assert breaker.allows_call(1_000)
    breaker.record_failure(1_100)
    assert not breaker.allows_call(1_999)
    assert breaker.allows_call(2_000)


def test_a_lost_probe_does_not_keep_it_open_for_ever():
    breaker = opened()
    assert [breaker.allows_call(now) for now in (1_000, 1_500, 2_000, 3_000)] == [True, False, True, True]


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


@pytest.mark.parametrize("threads", [2, 16])
def test_of_many_threads_one_is_the_probe(threads):
    breaker = opened()
    with ThreadPoolExecutor(threads) as pool:
        admitted = list(pool.map(breaker.allows_call, [1_000.0] * 200))
    assert sum(admitted) == 1


def test_every_rest_has_one_probe_however_many_threads_ask():
    breaker = opened()
    with ThreadPoolExecutor(16) as pool:
        for now in (1_000.0, 2_000.0, 3_000.0):
            assert sum(pool.map(breaker.allows_call, [now] * 100)) == 1
        breaker.record_success()
        assert sum(pool.map(breaker.allows_call, [3_001.0] * 100)) == 100
