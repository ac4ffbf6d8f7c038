"""What was reported on capabilities that are removed."""

from mats.domain.learning.outcome import Event
from mats.usecases.learn import ForgetRemoved
from tests.builders import a_registration
from tests.contract.learning import AT, PAY, SHIP, a_feedback, a_receipt
from tests.fakes import MemoryRegistry
from tests.learning import MemoryOutcomes


def test_only_what_is_not_registered_now_is_forgotten_however_often_it_is_said():
    registry, outcomes = MemoryRegistry(), MemoryOutcomes()
    registry.put([a_registration(namespace="com.acme", name="pay")])
    outcomes.record(a_receipt(), a_feedback(a_receipt(), (PAY, Event.FAILED), (SHIP, Event.FAILED)), AT)
    for _ in range(2):
        ForgetRemoved(registry, outcomes)([PAY, SHIP, SHIP])
        assert set(outcomes.of("q1").events) == {PAY}  # type: ignore[union-attr]
