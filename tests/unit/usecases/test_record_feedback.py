"""Who may report what."""

from dataclasses import replace

import pytest

from mats.domain.capability.capability import Id
from mats.domain.errors import ReceiptNotFound, RequestInvalid
from mats.domain.learning.outcome import Event, Feedback
from mats.usecases.learn import ForgetRemoved, RecordFeedback
from tests.builders import a_registration
from tests.contract.learning import PAY, SHIP, a_feedback, a_receipt
from tests.fakes import MemoryRegistry
from tests.learning import MemoryOutcomes, MemoryReceipts


def test_only_what_is_not_registered_now_is_forgotten_however_often_it_is_said():
    registry, outcomes = MemoryRegistry(), MemoryOutcomes()
    registry.put([a_registration(namespace="com.acme", name="pay")])
    outcomes.record(a_receipt(), a_feedback(a_receipt(), (PAY, Event.FAILED), (SHIP, Event.FAILED)))
    for _ in range(2):
        ForgetRemoved(registry, outcomes)([PAY, SHIP, SHIP])
        assert set(outcomes.of("q1").events) == {PAY}


@pytest.fixture
def record() -> RecordFeedback:
    receipts = MemoryReceipts()
    receipts.put(a_receipt())
    return RecordFeedback(receipts=receipts, outcomes=MemoryOutcomes(), days=30)


@pytest.mark.parametrize(
    "feedback",
    [
        Feedback(query_id="q2", caller=a_receipt().caller, outcomes=()),
        Feedback(query_id="q1", caller="someone else", outcomes=()),
    ],
    ids=["unknown", "another caller's"],
)
def test_an_answer_that_the_caller_did_not_get_does_not_exist(record, feedback):
    with pytest.raises(ReceiptNotFound, match="in the last 30 days"):
        record(feedback)


def test_ids_that_were_not_shown_are_named_and_nothing_is_recorded(record):
    other = Id("com.acme/other")
    feedback = a_feedback(a_receipt(), (PAY, Event.SUCCEEDED), (other, Event.FAILED))
    with pytest.raises(RequestInvalid) as refused:
        record(feedback)
    assert [fault.attribute for fault in refused.value.faults] == ["outcomes.1.id"]
    assert "com.acme/other" in str(refused.value)
    assert record.outcomes.of("q1") is None


@pytest.mark.parametrize("event", [Event.FAILED, Event.WRONG])
def test_success_and_its_opposite_are_not_accepted_together(record, event):
    for outcomes in ([(PAY, Event.SUCCEEDED), (PAY, event)], [(PAY, event), (PAY, Event.SUCCEEDED)]):
        with pytest.raises(RequestInvalid, match="report one of them"):
            record(a_feedback(a_receipt(), *outcomes))
    assert record(a_feedback(a_receipt(), (PAY, Event.SUCCEEDED), (SHIP, event)))


def test_without_texts_what_was_missing_is_stored_as_its_hash(record):
    kept = replace(record, texts=False)
    kept(Feedback(query_id="q1", caller=a_receipt().caller, outcomes=(), missing="a secret wish"))
    stored = str(vars(record.outcomes))
    assert "secret" not in stored
    assert "sha256:" in stored
