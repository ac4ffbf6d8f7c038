"""An operator's choice of models: read once a minute, never in the way of an answer."""

import threading
from dataclasses import replace

from mats.domain.errors import ModelRefused
from mats.domain.profile.profile import ChangeResult
from mats.domain.ranking.query import Query
from mats.ports import OFF, ModelChoice, RerankResult
from mats.usecases.discover import Discover
from mats.usecases.models import SwitchedModel
from mats.usecases.stages import CurrentChoice
from tests.builders import a_registration
from tests.fakes import FakeClock, FakeEncoder, MemoryModelSwitch, ScriptedReranker
from tests.world import THREE, World, a_writer, discover_over, indexed

MONEY = Query(query="give money back")


def judge(name: str) -> ScriptedReranker:
    return ScriptedReranker(lambda query, profiles: RerankResult(scores=(0.5,) * len(profiles)), name=name)


def switched_discover(choice: CurrentChoice, made: dict[str, ScriptedReranker]) -> Discover:
    discover = discover_over(indexed(*THREE), encoder=FakeEncoder(), reranker=judge("micro"))
    switch = SwitchedModel(lambda: choice().rerank, made.__getitem__)
    return replace(discover, rerank=replace(discover.rerank, switch=switch))


def test_the_choice_is_read_once_a_minute():
    switch, clock = MemoryModelSwitch(rerank=OFF), FakeClock()
    choice = CurrentChoice(switch.load, clock)
    assert [choice().rerank for _ in range(3)] == [OFF] * 3
    clock.ms = 59_999
    choice()
    assert switch.reads == 1
    switch.choose("rerank", "other")
    clock.ms = 60_000
    assert (choice().rerank, switch.reads) == ("other", 2)


def test_a_failed_read_keeps_the_last_choice_and_is_not_repeated_for_a_minute():
    switch, clock, failures = MemoryModelSwitch(writer=OFF), FakeClock(), []
    choice = CurrentChoice(switch.load, clock, on_failure=failures.append)
    choice()
    switch.broken, clock.ms = True, 60_000
    assert [choice().writer for _ in range(3)] == [OFF] * 3
    assert (switch.reads, len(failures)) == (2, 1)


def test_other_threads_do_not_wait_for_a_read():
    reading, go_on = threading.Event(), threading.Event()

    class Slow(MemoryModelSwitch):
        def load(self) -> ModelChoice:
            reading.set()
            assert go_on.wait(5)
            return super().load()

    choice = CurrentChoice(Slow(rerank=OFF).load, FakeClock())
    reader = threading.Thread(target=choice)
    reader.start()
    assert reading.wait(5)
    assert choice() == ModelChoice()
    go_on.set()
    reader.join()
    assert choice().rerank == OFF


def test_a_switched_off_reranker_is_absent_and_not_a_failure():
    switch = MemoryModelSwitch(rerank=OFF)
    answer = switched_discover(CurrentChoice(switch.load, FakeClock()), {})(MONEY)
    assert (answer.degraded, answer.without, answer.trace.reranker) == ((), ("llm",), None)
    plain = discover_over(indexed(*THREE), encoder=FakeEncoder())(MONEY)
    assert [(r.candidate.profile.id, r.score) for r in answer.ranked] == [
        (r.candidate.profile.id, r.score) for r in plain.ranked
    ]


def test_a_model_that_the_role_may_not_call_degrades_the_answer_and_is_named():
    denied = ModelRefused("pro cannot be used", model="pro", cause="AccessDeniedException: no")
    refusing = ScriptedReranker(lambda query, profiles: denied, name="pro")
    answer = switched_discover(CurrentChoice(MemoryModelSwitch(rerank="pro").load, FakeClock()), {"pro": refusing})(
        MONEY
    )
    assert (answer.degraded, answer.without, answer.trace.reranker) == (("llm",), (), "pro")
    assert answer.trace.faults == ["rerank: pro cannot be used"]
    assert [(refusal.role, refusal.model) for refusal in answer.trace.refused] == [("reranker", "pro")]


def test_a_model_is_made_once_and_the_configured_one_is_not_made_again():
    asked = []

    def make(model: str) -> ScriptedReranker:
        asked.append(model)
        return judge(model)

    micro, chosen = judge("micro"), iter(["pro", "pro", "micro", None, OFF])
    switched = SwitchedModel(lambda: next(chosen), make)
    names = [found.name if (found := switched(micro)) else None for _ in range(5)]
    assert (names, asked) == (["pro", "pro", "micro", "micro", None], ["pro"])


def test_a_choice_that_cannot_be_read_does_not_stop_enrichment():
    world, switch = World(encoder=FakeEncoder(), writer=a_writer(name="lite")), MemoryModelSwitch()
    choice = CurrentChoice(switch.load, FakeClock(), fresh_ms=0)
    world.use(switch=SwitchedModel(lambda: choice().writer, lambda name: a_writer(name=name)))
    switch.broken = True
    assert world.register(a_registration(name="pay")) is ChangeResult.INDEXED
