"""Stages wait no longer than their budget, which counts from their start."""

import pytest

from mats.domain.errors import OutOfTime
from mats.domain.ranking.query import Filter
from mats.domain.shortlist.trace import Trace
from mats.usecases.retrieve import Retrieve
from mats.usecases.stages import Stage, Stages
from tests.fakes import AtOnce, FakeClock, FakeEncoder, MemoryIndex


class LateFuture:
    """Never has a result; records the timeout in seconds, and whether it was cancelled."""

    def __init__(self) -> None:
        self.timeout: float | None = None
        self.cancelled = False

    def result(self, timeout: float) -> object:
        self.timeout = timeout
        raise TimeoutError

    def cancel(self) -> None:
        self.cancelled = True


@pytest.mark.parametrize(("elapsed_ms", "timeout_s"), [(0, 0.4), (150, 0.25), (400, 0.0), (5_000, 0.0)])
def test_a_stage_waits_for_the_rest_of_its_budget_only(elapsed_ms, timeout_s):
    future = LateFuture()
    stage = Stage("encode", 400, 1_000, FakeClock(ms=1_000 + elapsed_ms), future)
    with pytest.raises(OutOfTime, match="encode took longer than 400 ms"):
        stage.result()
    assert future.timeout == pytest.approx(timeout_s)
    assert future.cancelled


def test_the_fetch_gets_what_the_searches_left_of_the_retrieval_budget():
    clock, budgets = FakeClock(), {}

    class SlowIndex(MemoryIndex):
        def neural(self, *arguments, **options):
            clock.ms += 250
            return super().neural(*arguments, **options)

    class RecordingStages(Stages):
        def start(self, name, work, *, budget_ms=None):
            budgets[name] = budget_ms
            return super().start(name, work, budget_ms=budget_ms)

    stages = RecordingStages(clock=clock, executor=AtOnce(), models={"encode": AtOnce()})
    retrieve = Retrieve(index=SlowIndex(), encoder=FakeEncoder())
    retrieve.search("refund a card payment", ["refund"], Filter(), stages, Trace(index="memory"))
    assert budgets == {"lexical": None, "neural": None, "fetch": 350}
