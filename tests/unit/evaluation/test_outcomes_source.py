"""Judged sets from reported outcomes."""

from dataclasses import replace

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, Receipt, ReportedAnswer
from mats.evaluation.data.datasets import load, write
from mats.evaluation.data.outcomes import from_outcomes
from tests.builders import an_item

REFUND, GEOCODE = Id("com.acme.pay/refund"), Id("com.acme.pay/geocode")
ITEMS = {id: an_item(name=id.split("/")[1]) for id in (REFUND, GEOCODE)}
RECEIPT = Receipt(
    query_id="q1", text="money back", caller="ann", audiences=frozenset(), at="2026-01-01", shown=(REFUND, GEOCODE)
)
GOOD, BAD = frozenset({Event.SELECTED, Event.SUCCEEDED}), frozenset({Event.WRONG})


def answer(query_id: str = "q1", events=None, *, confirmed: bool = False, **receipt) -> ReportedAnswer:
    return ReportedAnswer(
        receipt=replace(RECEIPT, query_id=query_id, **receipt),
        events={REFUND: GOOD} if events is None else events,
        confirmed=confirmed,
    )


def test_a_success_is_a_judgement_that_evaluation_reads(tmp_path):
    judged = from_outcomes(ITEMS, [answer(), answer("q2", {GEOCODE: GOOD}, text="where is it")])
    write(judged, tmp_path / "set")
    found = load(tmp_path / "set")
    assert {query.text: query.relevant for query in found.queries} == {"money back": {REFUND}, "where is it": {GEOCODE}}
    assert {registration.id for registration in found.registrations} == ITEMS.keys()
    assert not found.refused


def test_equal_texts_are_one_query_with_what_served_any_of_them():
    judged = from_outcomes(ITEMS, [answer("q2", {GEOCODE: GOOD}, text="Money  back", at="2026-01-02"), answer()])
    assert judged.qrels == {("q1", REFUND): 1, ("q1", GEOCODE): 1}
    assert judged.left_out == {"answer to a text that is there already (merged)": 1}


def test_contradictions_are_left_out():
    judged = from_outcomes(ITEMS, [answer(), answer("q2", {REFUND: BAD}, caller="bob")])
    assert judged.qrels == {}
    assert judged.left_out["capability whose reports contradict each other"] == 1
    assert judged.left_out["text without a capability that served it"] == 1


def test_what_cannot_be_asked_again_is_left_out():
    gone = Id("com.acme.pay/gone")
    answers = [answer("a", text=""), answer("b", narrowed=True), answer("c", {gone: GOOD})]
    judged = from_outcomes(ITEMS, answers)
    assert judged.queries == {}
    assert judged.left_out == {
        "answer whose text is not stored": 1,
        "answer to a request with filters": 1,
        "capability that is no longer registered": 1,
        "text without a capability that served it": 1,
    }


def test_confirmed_takes_two_callers_or_an_operator():
    alone = answer()
    two = [answer(), answer("q2", caller="bob")]
    assert from_outcomes(ITEMS, [alone], confirmed=True).queries == {}
    assert from_outcomes(ITEMS, two, confirmed=True).qrels == {("q1", REFUND): 1}
    assert from_outcomes(ITEMS, [answer(confirmed=True)], confirmed=True).qrels == {("q1", REFUND): 1}
