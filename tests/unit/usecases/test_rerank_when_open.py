"""Calls of the reranker that are saved: where the first place is settled, and where an equal question was asked."""

from dataclasses import replace

import pytest

from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import Profile
from mats.domain.prompts.usage import Usage
from mats.domain.ranking.blend import Signal
from mats.domain.ranking.query import Query
from mats.ports import RerankResult, Stored
from mats.usecases.discover import Discover
from mats.usecases.retrieve import Recent
from tests.builders import a_profile
from tests.fakes import FakeClock, MemoryIndex, ScriptedReranker
from tests.world import GEOCODE, SECRET, THREE, discover_over, indexed, scored

ASKED = "turn this address into coordinates"


def in_auto(reranker: ScriptedReranker, *profiles: Profile, margin: float = 0.5) -> Discover:
    return replace(discover_over(indexed(*(profiles or THREE)), reranker=reranker), margin=margin)


def gap(query: str) -> float:
    first, second = discover_over(indexed(*THREE))(Query(query=query)).ranked[:2]
    return first.relevance - second.relevance


@pytest.mark.parametrize(("more", "asked"), [(-0.001, 0), (0.001, 1)])
def test_a_first_place_that_is_far_enough_ahead_needs_no_reranker(more: float, asked: int):
    reranker = scored(0.1, 0.2, 0.9)
    answer = in_auto(reranker, margin=gap(ASKED) + more)(Query(query=ASKED))
    assert reranker.asked == asked
    assert answer.without == (() if asked else ("llm",))
    assert answer.degraded == ()
    if not asked:
        assert answer.results[0].candidate.profile.name == "geocode"
        assert Signal.LLM not in answer.results[0].signals
        plain = discover_over(indexed(*THREE))(Query(query=ASKED))
        assert [(each.id, each.score) for each in answer.ranked] == [(each.id, each.score) for each in plain.ranked]
        assert answer.verdict is plain.verdict


def test_without_auto_a_name_is_reranked_and_with_it_not():
    for margin, asked in ((None, 1), (9.9, 0)):
        reranker = scored(0.9, 0.1, 0.1)
        discover = replace(discover_over(indexed(*THREE), reranker=reranker), margin=margin)
        assert discover(Query(query=GEOCODE.id)).results[0].id == GEOCODE.id
        assert reranker.asked == asked


def test_a_request_for_several_things_and_a_single_candidate_are_reranked():
    reranker = scored(0.9, 0.1, 0.1)
    in_auto(reranker, margin=0.0)(Query(queries=["turn an address into coordinates", "send a message"]))
    in_auto(reranker, THREE[0], margin=0.0)(Query(query=ASKED))
    in_auto(reranker, margin=0.0)(Query(query=ASKED))
    assert reranker.asked == 2


def sharing(reranker: ScriptedReranker, clock: FakeClock, index: MemoryIndex) -> Discover:
    discover = discover_over(index, reranker=reranker)
    return replace(discover, rerank=replace(discover.rerank, shared=Recent(fresh_ms=60_000, now_ms=clock.elapsed_ms)))


def test_equal_requests_within_the_time_cost_one_call_and_have_ids_of_their_own():
    clock, reranker = FakeClock(), scored(0.1, 0.2, 0.9)
    usage = Usage(input_tokens=1_200, usd=0.01)
    script = reranker.script
    reranker.script = lambda query, candidates: replace(script(query, candidates), usage=usage)
    discover = sharing(reranker, clock, indexed(*THREE))
    first, second = (discover(Query(query=ASKED), caller=caller) for caller in ("ann", "bob"))
    assert reranker.asked == 1
    assert [(each.id, each.score) for each in first.ranked] == [(each.id, each.score) for each in second.ranked]
    assert first.query_id != second.query_id
    assert (first.trace.usage, second.trace.usage) == (usage, Usage())
    discover(Query(query=ASKED + " now"))
    assert reranker.asked == 2
    clock.ms += 60_001
    discover(Query(query=ASKED))
    assert reranker.asked == 3


def test_callers_who_see_other_candidates_share_nothing():
    clock, reranker = FakeClock(), scored(0.9, 0.1, 0.1, 0.1)
    discover = sharing(reranker, clock, indexed(*THREE, SECRET))
    seen = [{each.id for each in discover(Query(query="give money back"), who).ranked} for who in (("finance",), ())]
    assert reranker.asked == 2
    assert SECRET.id in seen[0]
    assert SECRET.id not in seen[1]
    discover(Query(query="give money back"), ("others",))
    assert reranker.asked == 2


def test_a_changed_candidate_is_another_question():
    clock, reranker, index = FakeClock(), scored(0.9, 0.1, 0.1), indexed(*THREE)
    discover = sharing(reranker, clock, index)
    discover(Query(query=ASKED))
    changed = a_profile(name="geocode", description="turn an address into coordinates, cheaply")
    index.put([Stored(changed.model_copy(update={"rev": 2}), index.entries[changed.id].vector)])
    discover(Query(query=ASKED))
    assert reranker.asked == 2


@pytest.mark.parametrize("failure", [DependencyFailed("busy"), RerankResult(void="nonsense"), RerankResult(scores=())])
def test_what_is_no_usable_reply_is_not_shared(failure: RerankResult | Exception):
    clock, replies = FakeClock(), [failure, RerankResult(scores=(0.9, 0.1, 0.1))]
    reranker = ScriptedReranker(lambda query, candidates: replies.pop(0))
    discover = sharing(reranker, clock, indexed(*THREE))
    answers = [discover(Query(query=ASKED)) for _ in range(3)]
    assert [answer.degraded for answer in answers] == [("llm",), (), ()]
    assert reranker.asked == 2
