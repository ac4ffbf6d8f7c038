"""Requests for several things over fakes: candidates of all parts, one rerank call, a verdict for each part."""

from collections.abc import Sequence

import pytest

from mats.domain.errors import DependencyFailed
from mats.domain.search.query import Query
from mats.domain.search.scale import Scores
from mats.domain.search.shortlist import Shortlist
from mats.domain.search.trace import Trace
from mats.ports import RerankResult
from tests.builders import a_profile
from tests.fakes import MemoryIndex, ScriptedReranker
from tests.world import GEOCODE, MAIL, REFUND, THREE, discover_over, indexed

STEPS = ("give money back to a customer", "turn an address into coordinates")


def names(shortlist: Shortlist) -> list[str]:
    return [result.candidate.profile.name for result in shortlist.results]


def serving(shortlist: Shortlist) -> list[list[str]]:
    by_id = {result.id: result.candidate.profile.name for result in shortlist.results}
    return [[by_id[id] for id in part.results] for part in shortlist.parts]


def test_each_part_has_what_serves_it():
    shortlist = discover_over(indexed(*THREE)).answer(Query(queries=STEPS))
    assert [part.text for part in shortlist.parts] == list(STEPS)
    assert [served[0] for served in serving(shortlist)] == ["refund", "geocode"]
    assert set(names(shortlist)) == {"refund", "geocode", "mail"}


def test_the_reranker_is_called_once_for_the_whole_request_and_k_candidates():
    asked: list[tuple[str, int]] = []

    def score(query: str, candidates: Sequence[object]) -> RerankResult:
        asked.append((query, len(candidates)))
        return RerankResult(scores=(0.5,) * len(candidates))

    colours = "red blue green white black brown pink grey gold ochre olive teal".split()
    many = [
        a_profile(name=f"{colour} {step}", description=f"{colour} {n}")
        for step in STEPS
        for n, colour in enumerate(colours)
    ]
    discover_over(indexed(*many), reranker=ScriptedReranker(score)).answer(Query(queries=STEPS))
    assert asked == [("\n".join(STEPS), 15)]


def test_every_part_has_its_share_of_the_candidates():
    many = [a_profile(name=f"money {n}", description=f"give money back, way {n}") for n in range(40)]
    shortlist = discover_over(indexed(*many, GEOCODE)).answer(Query(queries=STEPS))
    assert "geocode" in names(shortlist)


def test_a_limit_leaves_room_for_every_part():
    many = [a_profile(name=f"money {n}", description=f"give money back to a customer {n}") for n in range(6)]
    shortlist = discover_over(indexed(*many, GEOCODE)).answer(Query(queries=STEPS, limit=2))
    assert len(shortlist.results) == 2
    assert "geocode" in names(shortlist)
    assert all(serving(shortlist))


def test_filters_and_visibility_hold_for_every_part():
    hidden = GEOCODE.model_copy(update={"visible_to": ("finance",)})
    index = indexed(REFUND, MAIL, hidden)
    discover = discover_over(index)
    assert "geocode" not in names(discover.answer(Query(queries=STEPS)))
    assert "geocode" in names(discover.answer(Query(queries=STEPS), ["finance"]))
    assert names(discover.answer(Query(queries=STEPS, namespaces=["com.elsewhere"]))) == []


def test_near_duplicates_share_their_places_over_all_parts():
    text = "give money back to a customer by card, transfer or voucher"
    copies = [a_profile(name=f"copy {n}", description=text) for n in range(8)]
    shortlist = discover_over(indexed(*copies, GEOCODE)).answer(
        Query(queries=("give money back", "money for a customer"))
    )
    assert sum(name.startswith("copy") for name in names(shortlist)) == 3


class _FailingFor(MemoryIndex):
    """Does not answer searches for these words."""

    broken: frozenset[str] = frozenset()

    def lexical(self, terms, admitted, *, depth) -> Scores:
        if self.broken & set(terms):
            raise DependencyFailed("the index is busy")
        return super().lexical(terms, admitted, depth=depth)


def _failing_for(*words: str) -> _FailingFor:
    index = _FailingFor()
    index.__dict__.update(indexed(*THREE).__dict__)
    index.broken = frozenset(words)
    return index


def test_a_part_that_cannot_be_searched_degrades_the_answer_and_is_not_uncovered():
    shortlist = discover_over(_failing_for("coordinates"), encoder=None).answer(
        Query(queries=("give money back", STEPS[1]))
    )
    assert shortlist.parts[0].verdict is not None
    assert shortlist.parts[1].verdict is None
    assert shortlist.degraded == ("lexical",)
    assert "refund" in names(shortlist)


def test_no_part_that_can_be_searched_is_an_error():
    with pytest.raises(DependencyFailed):
        discover_over(_failing_for("money", "coordinates"), encoder=None).answer(Query(queries=STEPS))


def test_the_time_of_a_stage_is_that_of_the_slowest_part():
    trace = Trace(index="memory")
    for ms in (3.0, 5.0, 4.0):
        part = trace.branch()
        part.took_ms["lexical"] = ms
        trace.merge(part)
    assert trace.took_ms == {"lexical": 5.0}
