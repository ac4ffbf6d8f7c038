"""Contract of the port `Outcomes`."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Outcome, taught_id
from mats.domain.learning.reliability import weight_at
from mats.ports import Outcomes
from tests.contract.learning import AT, PAY, SHIP, WRAP, a_feedback, a_receipt

SELECTED, SUCCEEDED, FAILED, WRONG = Event
LATER = "2026-02-01T00:00:00+00:00"


def tally(outcomes: Outcomes, id=PAY) -> list[tuple[str, float, float]]:
    """Callers with their successes and failures, in outcomes of AT."""
    return [
        (each.caller, pytest.approx(each.successes), pytest.approx(each.failures))
        for each in outcomes.tallies([id]).get(id, ())
    ]


def test_a_report_is_read_back_with_its_receipt(outcomes: Outcomes):
    receipt = a_receipt()
    feedback = a_feedback(receipt, (PAY, SELECTED), (PAY, SUCCEEDED), (SHIP, WRONG), missing="a stamp")
    assert outcomes.of("q1") is None
    assert outcomes.tallies([PAY]) == {}
    assert list(outcomes.query_ids()) == []
    assert list(outcomes.record(receipt, feedback, AT)) == list(feedback.outcomes)
    found = outcomes.of("q1")
    assert found is not None
    assert found.receipt == receipt
    assert found.events == {PAY: {SELECTED, SUCCEEDED}, SHIP: {WRONG}}
    assert (found.missing, found.confirmed) == ("a stamp", False)


def test_a_report_counts_once_however_often_it_comes(outcomes: Outcomes):
    receipt = a_receipt()
    for _ in range(3):
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)), AT)
    assert list(outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED), (PAY, SELECTED)), LATER)) == [
        Outcome(PAY, SELECTED)
    ]
    assert tally(outcomes) == [(receipt.caller, 1.0, 0.0)]


def test_only_success_and_failure_are_tallied(outcomes: Outcomes):
    receipt = a_receipt()
    outcomes.record(receipt, a_feedback(receipt, (PAY, SELECTED), (SHIP, WRONG), (WRAP, FAILED)), AT)
    assert tally(outcomes, PAY) == tally(outcomes, SHIP) == []
    assert tally(outcomes, WRAP) == [(receipt.caller, 0.0, 1.0)]


def test_a_success_that_failed_or_was_wrong_does_not_count_in_any_order(outcomes: Outcomes):
    failed = list(itertools.permutations([SELECTED, SUCCEEDED, FAILED]))
    for order in (*failed, *itertools.permutations([SUCCEEDED, WRONG])):
        receipt = a_receipt("+".join(order), caller="+".join(order))
        for event in order:
            outcomes.record(receipt, a_feedback(receipt, (PAY, event)), AT)
    counted = [each for each in tally(outcomes) if each != (each[0], 0.0, 0.0)]
    assert counted == [(caller, 0.0, 1.0) for caller in sorted(map("+".join, failed))]


def test_later_outcomes_weigh_more(outcomes: Outcomes):
    receipt, other = a_receipt(), a_receipt("q2")
    outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)), AT)
    outcomes.record(other, a_feedback(other, (PAY, SUCCEEDED)), LATER)
    assert tally(outcomes) == [(receipt.caller, weight_at(AT) + weight_at(LATER), 0.0)]


def test_a_withdrawn_success_is_withdrawn_with_its_own_weight(outcomes: Outcomes):
    receipt = a_receipt()
    outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)), AT)
    outcomes.record(receipt, a_feedback(receipt, (PAY, FAILED)), LATER)
    assert tally(outcomes) == [(receipt.caller, 0.0, weight_at(LATER))]


def test_callers_and_answers_have_tallies_of_their_own(outcomes: Outcomes):
    for number, caller in enumerate(["ann", "bob", "ann"]):
        receipt = a_receipt(f"q{number}", caller=caller)
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED), (SHIP, FAILED)), AT)
    assert tally(outcomes, PAY) == [("ann", 2.0, 0.0), ("bob", 1.0, 0.0)]
    assert tally(outcomes, SHIP) == [("ann", 0.0, 2.0), ("bob", 0.0, 1.0)]
    assert set(outcomes.tallies([PAY, SHIP, WRAP])) == {PAY, SHIP}


def test_tallies_of_many_capabilities_are_read_at_once(outcomes: Outcomes):
    shown = tuple(Id(f"com.acme/tool '{number}' \"?\"") for number in range(60))
    for caller in ("bob", "ann"):
        receipt = a_receipt(f"of {caller}", caller=caller, shown=shown)
        for start in (0, 30):
            outcomes.record(receipt, a_feedback(receipt, *((id, FAILED) for id in shown[start : start + 30])), AT)
    found = outcomes.tallies([*shown, *shown, PAY])
    assert set(found) == set(shown)
    assert all([each.caller for each in tallies] == ["ann", "bob"] for tallies in found.values())
    assert outcomes.tallies([]) == {}


def test_the_same_report_at_the_same_time_counts_once(outcomes: Outcomes):
    receipt = a_receipt()
    feedback = a_feedback(receipt, (PAY, SUCCEEDED), (SHIP, FAILED))
    with ThreadPoolExecutor(8) as pool:
        new = list(pool.map(lambda _: outcomes.record(receipt, feedback, AT), range(8)))
    assert sum(map(len, new)) == 2
    assert tally(outcomes, PAY) == [(receipt.caller, 1.0, 0.0)]


def test_reports_at_the_same_time_all_count(outcomes: Outcomes):
    receipts = [a_receipt(f"q{number}") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda r: outcomes.record(r, a_feedback(r, (PAY, SUCCEEDED)), AT), receipts))
    assert tally(outcomes) == [(receipts[0].caller, 8.0, 0.0)]


def test_a_report_may_only_say_what_is_missing(outcomes: Outcomes):
    receipt = a_receipt(shown=())
    assert list(outcomes.record(receipt, a_feedback(receipt, missing="a stamp"), AT)) == []
    outcomes.record(receipt, a_feedback(receipt, missing="two stamps"), AT)
    outcomes.record(receipt, a_feedback(receipt), AT)
    found = outcomes.of("q1")
    assert found is not None
    assert (found.missing, found.events) == ("two stamps", {})


def test_the_receipt_of_the_first_report_stays(outcomes: Outcomes):
    receipt = a_receipt()
    outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)), AT)
    outcomes.record(a_receipt(text="other"), a_feedback(receipt, (SHIP, SUCCEEDED)), AT)
    found = outcomes.of("q1")
    assert found is not None
    assert found.receipt == receipt
    assert set(found.events) == {PAY, SHIP}


def test_an_operator_confirms_and_withdraws(outcomes: Outcomes):
    receipt = a_receipt()
    assert not outcomes.confirm("q1")
    outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)), AT)
    assert outcomes.confirm("q1")
    assert outcomes.of("q1").confirmed  # type: ignore[union-attr]
    outcomes.record(receipt, a_feedback(receipt, (SHIP, SUCCEEDED)), AT)
    assert outcomes.of("q1").confirmed  # type: ignore[union-attr]
    assert outcomes.confirm("q1", confirmed=False)
    assert not outcomes.of("q1").confirmed  # type: ignore[union-attr]
    assert outcomes.of("q2") is None


def test_reported_answers_are_listed_once_and_go_on_after_any(outcomes: Outcomes):
    for number in range(30):
        receipt = a_receipt(f"q{number}")
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED), (SHIP, SELECTED)), AT)
    listed = list(outcomes.query_ids())
    assert sorted(listed) == sorted(f"q{number}" for number in range(30))
    for place in (0, 12, 29):
        assert list(outcomes.query_ids(after=listed[place])) == listed[place + 1 :]


def test_a_capability_is_forgotten_with_its_tallies(outcomes: Outcomes):
    for number in range(3):
        receipt = a_receipt(f"q{number}")
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED), (SHIP, SUCCEEDED)), AT)
    assert outcomes.forget(PAY) == 3
    assert outcomes.forget(PAY) == 0
    assert tally(outcomes, PAY) == []
    assert tally(outcomes, SHIP) == [(a_receipt().caller, 3.0, 0.0)]
    found = outcomes.of("q1")
    assert found is not None
    assert set(found.events) == {SHIP}


def test_a_lesson_is_in_no_tally_and_outlives_its_capability_until_it_is_erased(outcomes: Outcomes):
    lesson, report = a_receipt(taught_id("Pay and ship!"), caller=""), a_receipt()
    for receipt in (lesson, report):
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)), AT)
    assert tally(outcomes) == [(report.caller, 1.0, 0.0)]
    assert outcomes.forget(PAY) == 1
    kept = outcomes.of(taught_id("pay and  ship"))
    assert kept is not None
    assert kept.events == {PAY: {SUCCEEDED}}
    assert outcomes.forget(PAY, lessons=True) == 1


def test_a_lesson_is_withdrawn(outcomes: Outcomes):
    lesson = a_receipt(taught_id("pay"), caller="")
    assert not outcomes.withdraw(lesson.query_id)
    outcomes.record(lesson, a_feedback(lesson, (PAY, SUCCEEDED)), AT)
    assert outcomes.withdraw(lesson.query_id)
    assert outcomes.of(lesson.query_id) is None
    assert list(outcomes.query_ids()) == []


def test_what_a_caller_reported_is_withdrawn_but_what_an_operator_confirmed(outcomes: Outcomes):
    for name, caller in (("q1", "ann"), ("q2", "ann"), ("q3", "ben")):
        receipt = a_receipt(name, caller=caller)
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED), (SHIP, FAILED)), AT)
    lesson = a_receipt(taught_id("pay"), caller="")
    outcomes.record(lesson, a_feedback(lesson, (PAY, SUCCEEDED)), AT)
    outcomes.confirm("q2")
    assert outcomes.withdraw_of("ann") == 1
    assert sorted(outcomes.query_ids()) == ["q2", "q3", lesson.query_id]
    for _ in range(2):
        assert tally(outcomes, PAY) == [("ann", 1.0, 0.0), ("ben", 1.0, 0.0)]
        assert tally(outcomes, SHIP) == [("ann", 0.0, 1.0), ("ben", 0.0, 1.0)]
        assert outcomes.withdraw_of("ann") == 0
    outcomes.confirm("q2", confirmed=False)
    assert outcomes.withdraw_of("ann") == 1
    assert [each for each in tally(outcomes) if each != ("ann", 0.0, 0.0)] == [("ben", 1.0, 0.0)]
