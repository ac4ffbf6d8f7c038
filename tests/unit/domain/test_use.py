"""The sums of use, and what nothing served."""

import pytest

from mats.domain.capability.capability import Id, Kind
from mats.domain.learning.outcome import Event, Receipt, ReportedAnswer
from mats.domain.learning.use import GivenAnswer, Use, unserved_requests, use_by_id
from mats.domain.search.verdict import Verdict

IDS = A, B, C, D, E, F = tuple(Id(f"com.acme/{letter}") for letter in "abcdef")


def answer(
    *shown: Id, text: str = "refund", missing: str = "", events: dict[Id, tuple[Event, ...]] | None = None, **more
):
    receipt = Receipt(
        query_id="q",
        text=text,
        caller="me",
        audiences=frozenset(),
        at=more.pop("at", "2026-01-01"),
        shown=shown,
        **more,
    )
    reported = None
    if events or missing:
        frozen = {id: frozenset(each) for id, each in (events or {}).items()}
        reported = ReportedAnswer(receipt=receipt, events=frozen, missing=missing)
    return GivenAnswer(receipt=receipt, reported=reported)


def test_a_capability_is_asked_shown_and_first_by_its_place():
    found = use_by_id([answer(*IDS), answer(B, A)])
    assert {id: (use.asked, use.shown, use.first) for id, use in found.items()} == {
        A: (2, 2, 1), B: (2, 2, 1), C: (1, 1, 0), D: (1, 1, 0), E: (1, 1, 0), F: (1, 0, 0),
    }  # fmt: skip
    assert use_by_id([]) == {}


@pytest.mark.parametrize(
    ("events", "chosen", "succeeded", "lost_to"),
    [
        ((), 0, 0, {}),
        ((Event.SELECTED,), 1, 0, {A: 1}),
        ((Event.SELECTED, Event.SUCCEEDED), 1, 1, {A: 1}),
        ((Event.SUCCEEDED, Event.FAILED), 1, 0, {}),
        ((Event.WRONG,), 0, 0, {}),
    ],
    ids=str,
)
def test_a_request_is_lost_to_what_was_chosen_or_succeeded_instead(events, chosen, succeeded, lost_to):
    found = use_by_id([answer(*IDS, events={A: events} if events else None)])
    assert (found[A].chosen, found[A].succeeded, found[A].lost_to) == (chosen, succeeded, {})
    assert found[B].lost_to == lost_to
    assert found[F].lost_to == {}, "it was not among the first five"


def test_of_two_that_served_neither_lost_to_the_other():
    found = use_by_id([answer(A, B, C, events={A: (Event.SUCCEEDED,), B: (Event.SELECTED,)})])
    assert (found[A].lost_to, found[B].lost_to, found[C].lost_to) == ({}, {}, {A: 1, B: 1})


def test_what_was_reported_on_without_being_shown_counts_as_chosen():
    assert use_by_id([answer(events={A: (Event.SUCCEEDED,)})]) == {A: Use(chosen=1, succeeded=1)}


@pytest.mark.parametrize(
    ("given", "is_unserved"),
    [
        ({"verdict": Verdict.NONE}, True),
        ({"verdict": Verdict.WEAK, "events": {A: (Event.FAILED,)}}, True),
        ({"verdict": Verdict.WEAK, "events": {A: (Event.SELECTED,)}}, False),
        ({"verdict": Verdict.NONE, "events": {A: (Event.SUCCEEDED,)}}, False),
        ({"verdict": Verdict.MATCH}, False),
        ({"verdict": Verdict.MATCH, "missing": "a stamp", "events": {A: (Event.SUCCEEDED,)}}, True),
        ({"verdict": Verdict.NONE, "narrowed": True}, False),
        ({"verdict": Verdict.NONE, "narrowed": True, "kinds": (Kind.TOOL,)}, True),
        ({"verdict": None}, False),
    ],
    ids=str,
)
def test_a_request_is_unserved_without_a_match_and_a_success_or_by_its_callers_word(given, is_unserved):
    assert bool(unserved_requests([answer(A, **given)])) is is_unserved


def test_unserved_requests_are_grouped_by_text_and_without_texts_by_the_nearest():
    none = {"verdict": Verdict.NONE}
    found = unserved_requests([
        answer(text="", nearest=A, at="2026-01-06", **none),
        answer(text="Forge  a coin", nearest=B, at="2026-01-05", **none),
        answer(text="forge a coin", nearest=C, at="2026-01-04", **none),
        answer(text="refund", missing="forge a coin", at="2026-01-03"),
        answer(text="", nearest=B, at="2026-01-02", **none),
        answer(text="", nearest=A, at="2026-01-01", **none),
    ])  # fmt: skip
    assert [(one.text, one.nearest, one.last, one.requests) for one in found] == [
        ("Forge  a coin", B, "2026-01-05", 3), ("", A, "2026-01-06", 2), ("", B, "2026-01-02", 1),
    ]  # fmt: skip


def test_a_request_that_was_served_once_is_not_unserved_where_nobody_reported():
    once = answer(A, text="Give  it back", verdict=Verdict.NONE, events={A: (Event.SUCCEEDED,)})
    again, wrong = (
        answer(A, text="give it back", verdict=Verdict.WEAK, events=each) for each in ({}, {A: (Event.WRONG,)})
    )
    assert unserved_requests([again, once]) == []
    assert [one.requests for one in unserved_requests([again, once, wrong])] == [1]
