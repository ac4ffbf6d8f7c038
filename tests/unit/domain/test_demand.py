import pytest

from mats.domain.capability.capability import Id
from mats.domain.learning.demand import LEAST, REPORTED, Asked, gap_of, is_gap
from mats.domain.learning.outcome import Event
from mats.domain.ranking.blend import Verdict
from tests.contract.learning import a_receipt

NEAREST = Id("com.acme/refund")


def asked(text: str = "print a shipping label", caller: str = "ann", at: str = "01", **changes) -> Asked:
    fields = {"verdict": Verdict.NONE, "nearest": NEAREST, "relevance": 0.1, "at": f"2026-11-{at}T00:00:00+00:00"}
    fields |= {key: changes.pop(key) for key in ("verdict", "narrowed", "nearest") if key in changes}
    return Asked(receipt=a_receipt(text=text, caller=caller, **fields), **changes)


@pytest.mark.parametrize(
    ("changes", "unmet"),
    [
        ({}, 2),
        ({"verdict": Verdict.WEAK}, 1),
        ({"verdict": Verdict.MATCH}, 0),
        ({"verdict": None}, 0),
        ({"narrowed": True}, 0),
        ({"missing": "a label"}, REPORTED),
        ({"verdict": Verdict.MATCH, "events": frozenset({Event.WRONG})}, REPORTED),
        ({"verdict": Verdict.MATCH, "events": frozenset({Event.FAILED, Event.SELECTED})}, REPORTED),
        ({"events": frozenset({Event.SUCCEEDED, Event.WRONG})}, -REPORTED),
        ({"events": frozenset({Event.SELECTED})}, -REPORTED),
    ],
)
def test_what_the_caller_reports_outweighs_the_verdict(changes, unmet):
    assert asked(**changes).unmet == unmet


def test_two_requests_or_one_caller_who_says_what_is_missing_are_a_gap_that_served_requests_fill():
    assert is_gap([asked(), asked()], 0)
    assert not is_gap([asked()], 0)
    assert not is_gap([asked(verdict=Verdict.WEAK)] * 2, 0)
    assert is_gap([asked(missing="a label")], 0)
    assert not is_gap([asked(), asked()], 4 - LEAST + 0.1)


def test_a_gap_counts_and_names_and_says_what_the_nearest_lacks():
    group = [
        asked("print a shipping label"),
        asked("printing shipping labels for parcels", "bob", "03"),
        asked("a shipping label", "ann", "02", verdict=Verdict.WEAK, nearest=Id("com.acme/other")),
    ]
    gap = gap_of(group, 0, {NEAREST: {"ship", "monei"}})
    assert gap.name == "shipping, label, print"
    assert (gap.requests, gap.callers, gap.weight, gap.reported) == (3, 2, 5, 0)
    assert gap.verdicts == {"none": 2, "weak": 1}
    assert (gap.first[:10], gap.last[:10]) == ("2026-11-01", "2026-11-03")
    assert gap.examples == tuple(each.text for each in group)
    assert (gap.nearest.id, gap.nearest.answers, gap.nearest.relevance) == (NEAREST, 2, 0.1)
    assert gap.nearest.lacks == ("label", "print")


def test_examples_are_few_and_short_and_differ():
    texts = ["x" * 500, "x" * 500, "b", "c", "d"]
    gap = gap_of([asked(text) for text in texts], 0, {})
    assert gap.examples == ("x" * 199 + "…", "b", "c")


def test_a_gap_may_have_no_texts_and_no_nearest_capability():
    gap = gap_of([asked(""), asked("")], 0, {})
    assert (gap.name, gap.examples, gap.requests) == ("", (), 2)
    assert gap.nearest is not None
    assert gap_of([asked(nearest=None)], 0, {}).nearest is None
