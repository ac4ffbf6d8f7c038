"""Equal questions cost one call of the reranker."""

from dataclasses import replace

import pytest

from mats.domain.errors import DependencyFailed
from mats.domain.prompts.usage import Usage
from mats.domain.search.query import Query
from mats.ports import RerankResult, Stored
from mats.usecases.discover import Discover
from mats.usecases.recent import Recent
from mats.usecases.rerank import SharedReplies
from tests.builders import a_profile
from tests.fakes import FakeClock, MemoryIndex, ScriptedReranker
from tests.world import SECRET, THREE, discover_over, indexed, scored

ASKED = "turn this address into coordinates"


def sharing(reranker: ScriptedReranker, clock: FakeClock, index: MemoryIndex) -> Discover:
    return discover_over(index, reranker=SharedReplies(reranker, Recent(fresh_ms=60_000, now_ms=clock.elapsed_ms)))


def test_equal_requests_within_the_time_cost_one_call_and_have_ids_of_their_own():
    clock, reranker = FakeClock(), scored(0.1, 0.2, 0.9)
    usage = Usage(input_tokens=1_200, usd=0.01)
    script = reranker.script
    reranker.script = lambda query, candidates: replace(script(query, candidates), usage=usage)
    discover = sharing(reranker, clock, indexed(*THREE))
    first, second = (discover.answer(Query(query=ASKED), caller=caller) for caller in ("ann", "bob"))
    assert reranker.asked == 1
    assert [(each.id, each.score) for each in first.ranked] == [(each.id, each.score) for each in second.ranked]
    assert first.query_id != second.query_id
    assert (first.trace.usage, second.trace.usage) == (usage, Usage())
    discover.answer(Query(query=ASKED + " now"))
    assert reranker.asked == 2
    clock.ms += 60_001
    discover.answer(Query(query=ASKED))
    assert reranker.asked == 3


def test_callers_who_see_other_candidates_share_nothing():
    clock, reranker = FakeClock(), scored(0.9, 0.1, 0.1, 0.1)
    discover = sharing(reranker, clock, indexed(*THREE, SECRET))
    seen = [
        {each.id for each in discover.answer(Query(query="give money back"), who).ranked} for who in (("finance",), ())
    ]
    assert reranker.asked == 2
    assert SECRET.id in seen[0]
    assert SECRET.id not in seen[1]
    discover.answer(Query(query="give money back"), ("others",))
    assert reranker.asked == 2


def test_a_changed_candidate_is_another_question():
    clock, reranker, index = FakeClock(), scored(0.9, 0.1, 0.1), indexed(*THREE)
    discover = sharing(reranker, clock, index)
    discover.answer(Query(query=ASKED))
    changed = a_profile(name="geocode", description="turn an address into coordinates, cheaply")
    index.put([Stored(changed.model_copy(update={"rev": 2}), index.entries[changed.id].vector)])
    discover.answer(Query(query=ASKED))
    assert reranker.asked == 2


@pytest.mark.parametrize("failure", [DependencyFailed("busy"), RerankResult(void="nonsense"), RerankResult(scores=())])
def test_what_is_no_usable_reply_is_not_shared(failure: RerankResult | Exception):
    clock, replies = FakeClock(), [failure, RerankResult(scores=(0.9, 0.1, 0.1))]
    reranker = ScriptedReranker(lambda query, candidates: replies.pop(0))
    discover = sharing(reranker, clock, indexed(*THREE))
    answers = [discover.answer(Query(query=ASKED)) for _ in range(3)]
    assert [answer.degraded for answer in answers] == [("llm",), (), ()]
    assert reranker.asked == 2
