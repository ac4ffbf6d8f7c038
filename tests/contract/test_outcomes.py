"""Contract of the port `Outcomes`."""

from concurrent.futures import ThreadPoolExecutor

from mats.domain.learning.outcome import Event, Outcome, taught_id
from mats.ports import Outcomes
from tests.contract.learning import PAY, SHIP, a_feedback, a_receipt

SELECTED, SUCCEEDED, FAILED, WRONG = Event


def test_a_report_is_read_back_with_its_receipt(outcomes: Outcomes):
    receipt = a_receipt()
    feedback = a_feedback(receipt, (PAY, SELECTED), (PAY, SUCCEEDED), (SHIP, WRONG), missing="a stamp")
    assert outcomes.of("q1") is None
    assert list(outcomes.query_ids()) == []
    assert list(outcomes.record(receipt, feedback)) == list(feedback.outcomes)
    found = outcomes.of("q1")
    assert found is not None
    assert found.receipt == receipt
    assert found.events == {PAY: {SELECTED, SUCCEEDED}, SHIP: {WRONG}}
    assert (found.missing, found.confirmed) == ("a stamp", False)


def test_a_report_is_kept_once_however_often_it_comes(outcomes: Outcomes):
    receipt = a_receipt()
    for _ in range(3):
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)))
    assert list(outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED), (PAY, SELECTED)))) == [
        Outcome(PAY, SELECTED)
    ]
    assert outcomes.of("q1").events == {PAY: {SELECTED, SUCCEEDED}}  # type: ignore[union-attr]


def test_the_same_report_at_the_same_time_is_kept_once(outcomes: Outcomes):
    receipt = a_receipt()
    feedback = a_feedback(receipt, (PAY, SUCCEEDED), (SHIP, FAILED))
    with ThreadPoolExecutor(8) as pool:
        new = list(pool.map(lambda _: outcomes.record(receipt, feedback), range(8)))
    assert sum(map(len, new)) == 2


def test_reports_at_the_same_time_are_all_kept(outcomes: Outcomes):
    receipts = [a_receipt(f"q{number}") for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda r: outcomes.record(r, a_feedback(r, (PAY, SUCCEEDED))), receipts))
    assert sorted(outcomes.query_ids()) == [receipt.query_id for receipt in receipts]


def test_a_report_may_only_say_what_is_missing(outcomes: Outcomes):
    receipt = a_receipt(shown=())
    assert list(outcomes.record(receipt, a_feedback(receipt, missing="a stamp"))) == []
    outcomes.record(receipt, a_feedback(receipt, missing="two stamps"))
    outcomes.record(receipt, a_feedback(receipt))
    found = outcomes.of("q1")
    assert found is not None
    assert (found.missing, found.events) == ("two stamps", {})


def test_the_receipt_of_the_first_report_stays(outcomes: Outcomes):
    receipt = a_receipt()
    outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)))
    outcomes.record(a_receipt(text="other"), a_feedback(receipt, (SHIP, SUCCEEDED)))
    found = outcomes.of("q1")
    assert found is not None
    assert found.receipt == receipt
    assert set(found.events) == {PAY, SHIP}


def test_an_operator_confirms_and_withdraws(outcomes: Outcomes):
    receipt = a_receipt()
    assert not outcomes.confirm("q1")
    outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)))
    assert outcomes.confirm("q1")
    assert outcomes.of("q1").confirmed  # type: ignore[union-attr]
    outcomes.record(receipt, a_feedback(receipt, (SHIP, SUCCEEDED)))
    assert outcomes.of("q1").confirmed  # type: ignore[union-attr]
    assert outcomes.confirm("q1", confirmed=False)
    assert not outcomes.of("q1").confirmed  # type: ignore[union-attr]
    assert outcomes.of("q2") is None


def test_reported_answers_are_listed_once_and_go_on_after_any(outcomes: Outcomes):
    for number in range(30):
        receipt = a_receipt(f"q{number}")
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED), (SHIP, SELECTED)))
    listed = list(outcomes.query_ids())
    assert sorted(listed) == sorted(f"q{number}" for number in range(30))
    for place in (0, 12, 29):
        assert list(outcomes.query_ids(after=listed[place])) == listed[place + 1 :]


def test_a_capability_is_forgotten(outcomes: Outcomes):
    for number in range(3):
        receipt = a_receipt(f"q{number}")
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED), (SHIP, SUCCEEDED)))
    assert outcomes.forget(PAY) == 3
    assert outcomes.forget(PAY) == 0
    found = outcomes.of("q1")
    assert found is not None
    assert set(found.events) == {SHIP}


def test_a_lesson_outlives_its_capability_until_it_is_erased(outcomes: Outcomes):
    lesson, report = a_receipt(taught_id("Pay and ship!"), caller=""), a_receipt()
    for receipt in (lesson, report):
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)))
    assert outcomes.forget(PAY) == 1
    kept = outcomes.of(taught_id("pay and  ship"))
    assert kept is not None
    assert kept.events == {PAY: {SUCCEEDED}}
    assert outcomes.forget(PAY, lessons=True) == 1


def test_a_lesson_is_withdrawn(outcomes: Outcomes):
    lesson = a_receipt(taught_id("pay"), caller="")
    assert not outcomes.withdraw(lesson.query_id)
    outcomes.record(lesson, a_feedback(lesson, (PAY, SUCCEEDED)))
    assert outcomes.withdraw(lesson.query_id)
    assert outcomes.of(lesson.query_id) is None
    assert list(outcomes.query_ids()) == []


def test_what_a_caller_reported_is_withdrawn_but_what_an_operator_confirmed(outcomes: Outcomes):
    for name, caller in (("a", "ann"), ("b", "ann"), ("c", "ben"), ("d", "ann")):
        receipt = a_receipt(name, caller=caller)
        outcomes.record(receipt, a_feedback(receipt, (PAY, SUCCEEDED)))
    for name in ("b", "d"):
        outcomes.confirm(name)
    outcomes.confirm("d", confirmed=False)
    assert (outcomes.withdraw_of("ann"), outcomes.withdraw_of("ann"), outcomes.withdraw_of("nobody")) == (2, 0, 0)
    assert sorted(outcomes.query_ids()) == ["b", "c"]
    assert outcomes.of("a") is None
