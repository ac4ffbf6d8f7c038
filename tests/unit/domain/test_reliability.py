import math
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Id
from mats.domain.learning.reliability import (
    MOST_PER_CALLER,
    PRIOR_OUTCOMES,
    Tally,
    count,
    limit_moves,
    posterior,
    weight_at,
)
from mats.domain.search.candidate import Counts

NOW = "2026-11-22T12:00:00+00:00"
_WEIGHT = weight_at(NOW)

numbers = st.floats(0, 200, allow_nan=False)
callers = st.sampled_from(["me", "ann", "bob", "cleo", "dan"])
reports = st.lists(st.tuples(callers, numbers, numbers), max_size=8, unique_by=lambda row: row[0])
priors = st.floats(0, 1)


def tallies_of(rows: list[tuple[str, float, float]]) -> list[Tally]:
    """Tallies of outcomes that happened now."""
    return [Tally(caller=who, successes=good * _WEIGHT, failures=bad * _WEIGHT) for who, good, bad in rows]


def counts_of(rows: list[tuple[str, float, float]], asking: str = "me") -> Counts:
    return count(tallies_of(rows), asking=asking, now=NOW)


def mean(prior: float, rows: list[tuple[str, float, float]]) -> float:
    return posterior(prior, counts_of(rows)).mean


@given(priors, reports)
def test_the_mean_lies_in_its_interval_and_both_in_0_to_1(prior, rows):
    found = posterior(prior, counts_of(rows))
    assert 0 <= found.low <= found.mean <= found.high <= 1


@given(priors, reports, st.integers(0, 7), numbers)
def test_a_further_success_of_anyone_never_lowers_the_mean_nor_a_failure_raises_it(prior, rows, position, more):
    if not rows:
        return
    who, good, bad = rows[position % len(rows)]
    others = [row for row in rows if row[0] != who]
    before = mean(prior, rows)
    assert mean(prior, [*others, (who, good + more, bad)]) >= before - 1e-9
    assert mean(prior, [*others, (who, good, bad + more)]) <= before + 1e-9


@given(reports, numbers, numbers)
def test_one_caller_adds_no_more_than_the_cap_for_others(rows, good, bad):
    others = [row for row in rows if row[0] != "eve"]
    before, after = counts_of(others), counts_of([*others, ("eve", good, bad)])
    assert 0 <= after.successes - before.successes <= MOST_PER_CALLER + 1e-6
    assert 0 <= after.failures - before.failures <= MOST_PER_CALLER + 1e-6


@given(numbers, numbers)
def test_one_caller_alone_counts_nothing_for_others_and_in_full_for_itself(good, bad):
    rows = [("eve", good, bad)]
    assert not counts_of(rows)
    own = counts_of(rows, asking="eve")
    assert (own.successes, own.failures) == (pytest.approx(good), pytest.approx(bad))


@given(priors, reports, st.integers(0, 1_000))
def test_after_a_half_life_half_of_each_outcome_is_left(prior, rows, days):
    tallies = tallies_of([("me", good, bad) for _, good, bad in rows][:1])
    later = (datetime.fromisoformat(NOW) + timedelta(days=days)).isoformat()
    now, then = count(tallies, asking="me", now=NOW), count(tallies, asking="me", now=later)
    assert then.successes == pytest.approx(now.successes * 0.5 ** (days / 30), abs=1e-9)
    assert abs(posterior(prior, then).mean - prior) <= abs(posterior(prior, now).mean - prior) + 1e-9


def test_trust_counts_as_twenty_outcomes():
    assert posterior(0.5, Counts(failures=PRIOR_OUTCOMES)).mean == pytest.approx(0.25)


@pytest.mark.parametrize(
    "clock", ["1900-01-01T00:00:00+00:00", "2136-06-01T00:00:00+00:00", "9999-01-01T00:00:00+00:00"]
)
def test_a_clock_far_off_leaves_sums_finite(clock):
    there = [Tally(caller=who, successes=weight_at(clock) * 9, failures=_WEIGHT) for who in ("ann", "bob")]
    assert all(math.isfinite(posterior(0.5, count(there, asking="me", now=at)).mean) for at in (clock, NOW))


def ids(text: str) -> list[Id]:
    return [Id(letter) for letter in text]


orders = st.permutations("abcdef")


@given(orders, orders)
def test_own_reports_lead_to_the_order_after_them_and_without_callers_nothing_moves(before, after):
    counts = {id: Counts(1, 1) for id in ids("abcdef")}
    assert limit_moves(ids(before), ids(after), counts) == ids(after)
    assert limit_moves(ids(before), ids(after), {}) == ids(before)


@given(orders, orders, st.sampled_from("abcdef"), st.integers(0, 4))
def test_one_more_caller_moves_no_capability_by_more_than_one_place(before, after, id, callers):
    few, more = ({Id(id): Counts(1, 1, rise=0, sink=n)} for n in (callers, callers + 1))
    one, other = limit_moves(ids(before), ids(after), few), limit_moves(ids(before), ids(after), more)
    assert all(abs(one.index(each) - other.index(each)) <= 1 for each in one)


def test_a_capability_moves_by_the_number_of_callers_behind_its_failures_or_successes():
    assert limit_moves(ids("abcd"), ids("bcda"), {Id("a"): Counts(0, 2, rise=0, sink=2.9)}) == ids("bcad")
    assert limit_moves(ids("abcd"), ids("dabc"), {Id("d"): Counts(1, 0, rise=1, sink=0)}) == ids("abdc")
