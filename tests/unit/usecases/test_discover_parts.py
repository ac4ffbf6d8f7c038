"""Requests for several things over fakes: candidates of all parts, one rerank call, a verdict for each part."""

from collections.abc import Sequence

import pytest

from mats.domain.errors import DependencyFailed
from mats.domain.ranking.blend import Scores, Verdict
from mats.domain.ranking.query import Query
from mats.domain.shortlist.rank import Shortlist
from mats.domain.shortlist.trace import Trace
from mats.ports import RerankResult
from tests.builders import a_profile
from tests.fakes import MemoryIndex, ScriptedReranker
from tests.world import GEOCODE, MAIL, REFUND, THREE, discover_over, indexed

REQUEST = "give money back to a customer, and then turn an address into coordinates"
STEPS = ("give money back to a customer", "turn an address into coordinates")


def names(shortlist: Shortlist) -> list[str]:
    return [result.candidate.profile.name for result in shortlist.results]


def serving(shortlist: Shortlist) -> list[list[str]]:
    by_id = {result.id: result.candidate.profile.name for result in shortlist.results}
    return [[by_id[id] for id in part.results] for part in shortlist.parts]


@pytest.mark.parametrize("query", [Query(query=REQUEST, parts=True), Query(queries=STEPS)], ids=["cut", "planned"])
def test_each_part_has_what_serves_it(query):
    shortlist = discover_over(indexed(*THREE))(query)
    assert [part.text for part in shortlist.parts] == list(STEPS)
    assert [served[0] for served in serving(shortlist)] == ["refund", "geocode"]
    assert set(names(shortlist)) == {"refund", "geocode", "mail"}


def test_a_single_request_is_one_part_and_answered_as_without_parts():
    discover = discover_over(indexed(*THREE))
    plain, one = (discover(Query(query=STEPS[0], parts=parts)) for parts in (False, True))
    assert [(r.candidate, r.score) for r in one.results] == [(r.candidate, r.score) for r in plain.results]
    assert one.verdict is plain.verdict
    assert plain.parts == ()
    (part,) = one.parts
    assert (part.text, part.verdict) == (STEPS[0], plain.verdict)
    assert list(part.results) == [result.id for result in one.results]


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
    discover_over(indexed(*many), reranker=ScriptedReranker(score))(Query(query=REQUEST, parts=True))
    assert asked == [(REQUEST, 15)]


def test_every_part_has_its_share_of_the_candidates():
    many = [a_profile(name=f"money {n}", description=f"give money back, way {n}") for n in range(40)]
    shortlist = discover_over(indexed(*many, GEOCODE))(Query(query=REQUEST, parts=True))
    assert "geocode" in names(shortlist)


def test_a_limit_leaves_room_for_every_part():
    many = [a_profile(name=f"money {n}", description=f"give money back to a customer {n}") for n in range(6)]
    shortlist = discover_over(indexed(*many, GEOCODE))(Query(query=REQUEST, parts=True, limit=2))
    assert len(shortlist.results) == 2
    assert "geocode" in names(shortlist)
    assert all(serving(shortlist))


def test_filters_and_visibility_hold_for_every_part():
    hidden = GEOCODE.model_copy(update={"visible_to": ("finance",)})
    index = indexed(REFUND, MAIL, hidden)
    discover = discover_over(index)
    assert "geocode" not in names(discover(Query(queries=STEPS)))
    assert "geocode" in names(discover(Query(queries=STEPS), ["finance"]))
    assert names(discover(Query(queries=STEPS, namespaces=["com.elsewhere"]))) == []


def test_near_duplicates_share_their_places_over_all_parts():
    text = "give money back to a customer by card, transfer or voucher"
    copies = [a_profile(name=f"copy {n}", description=text) for n in range(8)]
    shortlist = discover_over(indexed(*copies, GEOCODE))(Query(queries=("give money back", "money for a customer")))
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
    shortlist = discover_over(_failing_for("coordinates"), encoder=None)(Query(queries=("give money back", STEPS[1])))
    assert shortlist.parts[0].verdict is not None
    assert shortlist.parts[1].verdict is None
    assert shortlist.degraded == ("lexical",)
    assert "refund" in names(shortlist)


def test_no_part_that_can_be_searched_is_an_error():
    with pytest.raises(DependencyFailed):
        discover_over(_failing_for("money", "coordinates"), encoder=None)(Query(queries=STEPS))


def test_the_time_of_a_stage_is_that_of_the_slowest_part():
    trace = Trace(index="memory")
    for ms in (3.0, 5.0, 4.0):
        part = trace.branch()
        part.took_ms["lexical"] = ms
        trace.merge(part)
    assert trace.took_ms == {"lexical": 5.0}


ASKED = Query(query="money for a customer")
MANY = [
    a_profile(name=f"p{n}", description=" ".join(["money customer", *(f"{letter}{n}" for letter in "abcdefgh")]))
    for n in range(40)
]


def planning(steps: Sequence[str], picked: str = "", **faults: str) -> ScriptedReranker:
    def score(query, candidates):
        scores = tuple(0.9 if candidate.name == picked else 0.1 for candidate in candidates)
        return RerankResult(scores=() if faults else scores, steps=tuple(steps), **faults)

    return ScriptedReranker(score)


def test_the_steps_of_a_rerankers_plan_are_searched_and_what_it_picked_stays():
    plain = discover_over(indexed(*MANY, GEOCODE))(ASKED)
    assert "geocode" not in names(plain)
    last = names(plain)[-1]
    reranker = planning((STEPS[1], "send a message"), picked=last)
    shortlist = discover_over(indexed(*MANY, GEOCODE), reranker=reranker)(ASKED)
    assert reranker.asked == 1
    assert {"geocode", last} == set(names(shortlist)[:2])
    assert shortlist.parts == ()
    assert shortlist.verdict is Verdict.MATCH


@pytest.mark.parametrize("reranker", [planning(()), planning(STEPS, void="nonsense")], ids=["none", "void"])
def test_without_a_usable_plan_the_answer_is_that_of_one_search(reranker):
    answers = [discover_over(indexed(*MANY, GEOCODE), reranker=r)(ASKED) for r in (reranker, planning(()))]
    assert len({frozenset(names(answer)) for answer in answers}) == 1


def test_an_answer_survives_an_index_that_fails_for_the_plan():
    index = _FailingFor()
    index.put(list(indexed(*MANY).entries.values()))

    def score(query, candidates):
        index.broken = frozenset({"money", "address", "message"})
        return planning((STEPS[1], "send a message")).script(query, candidates)

    shortlist = discover_over(index, reranker=ScriptedReranker(score), encoder=None)(ASKED)
    assert len(shortlist.results) == 15
    assert any(fault.startswith("plan: ") for fault in shortlist.trace.faults)
