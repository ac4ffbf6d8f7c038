"""The memory of both indices: what is found, who counts, and what is gone."""

import time
from array import array
from collections.abc import Callable

import pytest

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, pack_vector, taught_id
from tests.contract.conftest import Learning
from tests.contract.learning import PAY, SHIP, WRAP, a_feedback, a_receipt

Making = Callable[[str, int], Learning]
EAST, NORTH = array("f", [1.0, 0.0]), array("f", [0.0, 1.0])
BETWEEN = array("f", [0.8, 0.6])


@pytest.fixture
def made(learning: Making) -> Learning:
    return learning("fake", 2)


def tell(learning: Learning, query_id: str, used: Id = PAY, vector: array = EAST, **changes) -> None:
    receipt = a_receipt(query_id, vector=pack_vector(vector), **changes)
    learning.outcomes.record(receipt, a_feedback(receipt, (used, Event.SUCCEEDED)))
    learning.learn([query_id])


def found(learning: Learning, vector: array = EAST, depth: int = 10, without=()) -> list[str]:
    return [near.memory.query_id for near in learning.memory.nearest(vector, depth=depth, without=without)]


def test_nothing_is_found_in_an_empty_memory(made: Learning):
    assert found(made) == []
    assert set(made.memory.with_outcomes([PAY], "ann")) == set()


def test_requests_are_found_by_similarity(made: Learning):
    tell(made, "north", vector=NORTH)
    tell(made, "east")
    tell(made, "between", vector=BETWEEN)
    near = made.memory.nearest(EAST, depth=2)
    assert [(each.memory.query_id, round(each.similarity, 2)) for each in near] == [("east", 1.0), ("between", 0.8)]


def test_equally_similar_ones_are_in_the_order_of_their_query_ids(made: Learning):
    for query_id in ("b", "c", "a"):
        tell(made, query_id)
    assert found(made) == ["a", "b", "c"]


def test_a_request_is_found_as_it_was_remembered(made: Learning):
    tell(made, "q1", used=SHIP)
    made.outcomes.confirm("q1")
    made.learn(["q1"])
    [near] = made.memory.nearest(EAST, depth=5)
    memory = near.memory
    assert (memory.text, memory.caller, memory.audiences) == (
        "pay and ship", "arn:aws:iam::1:role/bot", {"staff", "eu"}
    )  # fmt: skip
    assert (memory.used, memory.passed_over, memory.confirmed) == ({SHIP}, {PAY}, True)


def test_a_success_that_turned_out_wrong_is_forgotten(made: Learning):
    tell(made, "q1")
    receipt = a_receipt("q1", vector=pack_vector(EAST))
    made.outcomes.record(receipt, a_feedback(receipt, (PAY, Event.WRONG)))
    made.learn(["q1"])
    assert found(made) == []
    assert set(made.memory.with_outcomes([PAY], receipt.caller)) == set()


def test_a_second_report_within_a_millisecond_is_remembered(made: Learning, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(time, "time_ns", lambda: 1_800_000_000 * 10**9)
    for used in (PAY, SHIP):
        tell(made, "q1", used=used)
    [near] = made.memory.nearest(EAST, depth=5)
    assert near.memory.used == {PAY, SHIP}


def test_callers_are_left_out_beside_what_is_gone(made: Learning):
    for query_id, caller in (("q1", "ann"), ("q2", "bob"), ("q3", "cy")):
        tell(made, query_id, caller=caller)
    receipt = a_receipt("q3", vector=pack_vector(EAST), caller="cy")
    made.outcomes.record(receipt, a_feedback(receipt, (PAY, Event.WRONG)))
    made.learn(["q3"])
    assert found(made) == ["q1", "q2"]
    assert found(made, without=["ann", "cy", "nobody"]) == ["q2"]
    tell(made, "q4", caller="ann", vector=BETWEEN)
    assert found(made) == ["q1", "q2", "q4"]
    assert found(made, without=["ann"]) == ["q2"]


def test_what_is_reported_counts_for_its_caller_at_once_and_for_others_with_a_second_one(made: Learning):
    tell(made, "q1", caller="ann")
    tell(made, "q2", caller="ann")
    assert set(made.memory.with_outcomes([PAY, SHIP], "ann")) == {PAY}
    assert set(made.memory.with_outcomes([PAY, SHIP], "eve")) == set()
    tell(made, "q3", caller="bob", vector=NORTH)
    assert set(made.memory.with_outcomes([PAY, SHIP], "eve")) == {PAY}
    assert set(made.memory.with_outcomes([PAY, SHIP], "eve", without=["bob"])) == set()


def test_how_many_own_and_confirmed_requests_used_a_capability(made: Learning):
    for query_id, caller in (("q1", "ann"), ("q2", "ann"), ("q3", "bob"), ("q4", "cy")):
        tell(made, query_id, caller=caller)
    for query_id in ("q2", "q3"):
        made.outcomes.confirm(query_id)
    made.learn(["q2", "q3"])
    assert made.memory.with_outcomes([PAY, SHIP], "ann") == {PAY: 3}
    assert made.memory.with_outcomes([PAY, SHIP], "cy") == {PAY: 3}
    assert made.memory.with_outcomes([PAY, SHIP], "eve") == {PAY: 2}
    made.outcomes.confirm("q3", confirmed=False)
    made.learn(["q3"])
    assert made.memory.with_outcomes([PAY, SHIP], "eve") == {PAY: 1}


def test_a_removed_capability_is_gone(made: Learning):
    tell(made, "q1", used=PAY)
    tell(made, "q2", used=PAY)
    tell(made, "q2", used=SHIP)
    made.outcomes.forget(PAY)
    made.learn(["q1", "q2"])
    [near] = made.memory.nearest(EAST, depth=5)
    assert (near.memory.query_id, near.memory.used) == ("q2", {SHIP})
    assert set(made.memory.with_outcomes([PAY, SHIP], near.memory.caller)) == {SHIP}


@pytest.mark.parametrize(("encoder", "vector"), [("other", EAST), ("wider", array("f", [1.0, 0.0, 0.0]))])
def test_vectors_of_another_encoder_or_dimension_are_silent(made: Learning, learning: Making, encoder, vector):
    tell(made, "q1")
    other = learning(encoder, len(vector))
    assert found(other, vector) == []
    tell(other, "q2", vector=vector, encoder=encoder)
    assert found(other, vector) == ["q2"]


def test_callers_hide_no_lesson_and_lessons_count_for_no_other_request(made: Learning):
    for number in range(8):
        tell(made, f"q{number}", caller=f"caller {number}", vector=BETWEEN)
    lesson = taught_id("a lesson")
    tell(made, lesson, used=WRAP, caller="", vector=NORTH)
    assert found(made, depth=2) == ["q0", "q1", lesson]
    assert found(made, depth=2, without=["caller 0"]) == ["q1", "q2", lesson]
    assert found(made, NORTH, depth=1) == [lesson]
    assert set(made.memory.with_outcomes([WRAP], "eve")) == set()
    tell(made, "q8", used=WRAP, caller="ann", vector=NORTH)
    assert set(made.memory.with_outcomes([WRAP], "eve")) == set()
    made.outcomes.withdraw(lesson)
    made.learn([lesson])
    assert found(made, depth=2) == ["q0", "q1"]


def test_room_is_made_for_many(made: Learning):
    receipts = [a_receipt(f"q{n:03}", vector=pack_vector(array("f", [1.0, n / 1_000]))) for n in range(300)]
    for receipt in receipts:
        made.outcomes.record(receipt, a_feedback(receipt, (PAY, Event.SUCCEEDED)))
    made.learn([receipt.query_id for receipt in receipts])
    assert found(made, depth=3) == ["q000", "q001", "q002"]
