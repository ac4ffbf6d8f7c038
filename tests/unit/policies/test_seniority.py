"""Newcomers, and who leads them."""

import math
from datetime import UTC, datetime

import pytest

from mats.domain.policies.policy import Ask, Pool
from mats.domain.policies.seniority import Seniority, find_newcomers, limit_newcomers
from mats.domain.profile.profile import DAY_S, Profile
from mats.domain.search.candidate import UNMARKED, Candidate, Elsewhere, Exactness, Marks, Result
from mats.domain.search.query import Filter, Query
from mats.domain.search.shortlist import Ranked
from mats.domain.search.verdict import Thresholds
from tests.builders import SCORING, a_profile, rank
from tests.fakes import FakeClock, MemoryIndex
from tests.world import discover_over, indexed

NOW_S = 1_790_000_000.0
SENIORITY = Seniority(50)


def found(name: str, measured: float, *, trust: int | None = None, **marks) -> Candidate:
    profile = a_profile(name=name, trust=trust)
    return Candidate(profile=profile, bm25=None, cosine=measured, marks=Marks(**marks))


def names(*candidates: Candidate, scores: dict | None = None) -> list[str]:
    return [each.candidate.profile.name for each in rank(candidates, scores or {}, SENIORITY)]


@pytest.mark.parametrize(
    ("trusted", "other", "leads"),
    [
        (found("a", 0.37, trust=80), found("b", 0.40), False),
        (found("a", 0.45, trust=80), found("b", 0.65, new=True), True),
        (found("a", 0.40, trust=80), found("b", 0.65, new=True), False),
        (found("a", 0.45, trust=80), found("b", 0.65), False),
        (found("a", 0.45, trust=80), found("b", 0.65, new=True, exact=Exactness.NAME), False),
        (found("a", 0.40, trust=80), found("b", 0.65, new=True, quoted=True), True),
        (found("a", 0.40), found("b", 0.65, new=True, quoted=True), False),
        (found("a", 0.05, trust=80), found("b", 0.12, new=True), False),
        (found("a", 0.45, trust=80, elsewhere=Elsewhere(("Jira",), told=True)), found("b", 0.65, new=True), False),
        (found("a", 0.37, trust=80, unfit="needs a key"), found("b", 0.40, new=True), False),
        (found("a", 0.30), found("b", 0.55, new=True), False),
        (found("a", 0.45), found("b", 0.55, new=True), True),
        (found("a", 0.45), found("b", 0.55), False),
    ],
    ids=[
        "rated and nearly as near", "rated beside a newcomer", "half as relevant", "rated beside an old one",
        "an exact name is not led", "rated beside an example that is the request", "older beside such an example",
        "below a weak match", "of another product than was named", "what cannot be called",
        "older and far", "older and near", "equally old",
    ],
)  # fmt: skip
def test_a_trusted_or_older_one_leads_if_it_is_relevant_itself(trusted: Candidate, other: Candidate, leads: bool):
    assert names(trusted, other) == (["a", "b"] if leads else ["b", "a"])


def test_a_reranker_has_read_both_so_nobody_is_led():
    candidates = found("a", 0.5, trust=80), found("b", 0.5, new=True)
    assert names(*candidates, scores={candidates[0].id: 0.7, candidates[1].id: 0.9}) == ["b", "a"]


def since(seconds_ago: float, *, trust: int | None = None) -> Profile:
    registered = datetime.fromtimestamp(NOW_S - seconds_ago, UTC).isoformat()
    return a_profile(trust=trust).model_copy(update={"first_registered": registered})


@pytest.mark.parametrize(
    ("days", "trust", "is_new"),
    [(39.5, None, False), (31, None, False), (29, None, True), (1, None, True), (1, 60, False)],
)
def test_new_is_what_came_a_day_after_the_oldest_within_a_month_and_is_unrated(days, trust, is_new):
    oldest_s = NOW_S - 40 * DAY_S
    assert bool(find_newcomers([since(days * DAY_S, trust=trust)], oldest_s, NOW_S)) is is_new


def test_within_a_day_of_the_oldest_nothing_is_new_whatever_the_date_is():
    assert not find_newcomers([since(60), since(DAY_S - 60)], NOW_S - DAY_S, NOW_S)


def test_newcomers_have_a_fifth_of_the_places_whatever_is_behind_them():
    kept, spare = limit_newcomers(range(30), {*range(20)}, 3)
    assert (kept, spare) == ([0, 1, 2, *range(20, 30)], [*range(3, 20)])


def registry_of(*days_ago: float) -> MemoryIndex:
    profiles = [since(days * DAY_S).model_copy(update={"name": f"t{n}"}) for n, days in enumerate(days_ago)]
    return indexed(*profiles)


@pytest.mark.parametrize(
    ("days_ago", "oldest", "is_new"),
    [
        ((90, 5, 5), -math.inf, {5: True, 29: True, 40: False}),
        ((20, 20, 3), 20, {3: True, 18: True, 19: False}),
        ((4, 3, 3), 4, {3: False, 2: True, 0: True}),
        ((0, 0), 0, {0: False}),
    ],
)
def test_how_old_a_registry_is_says_the_registry_and_not_what_is_found_in_it(days_ago, oldest, is_new):
    ask = Ask.of("x", Filter(namespaces=frozenset({"org.new"})), now_s=NOW_S)
    ages = SENIORITY.look(ask, registry_of(*days_ago), None, None)
    ended = oldest if oldest < 0 else (NOW_S - oldest * DAY_S) // DAY_S * DAY_S + DAY_S
    assert ages.oldest_s == ended
    for days, new in is_new.items():
        assert (f"~{since(days * DAY_S).day}" in ages.new_days) is new, days


@pytest.mark.parametrize(("older", "most_are_new"), [(3, False), (2, True)])
@pytest.mark.parametrize("days", [90, 20])
def test_where_most_of_a_registry_is_new_nothing_is_a_newcomer(older, most_are_new, days):
    index = registry_of(*[days] * older, 3, 3, 3)
    ask = Ask.of("x", Filter(namespaces=frozenset({"org.new"})), now_s=NOW_S)
    ages = SENIORITY.look(ask, index, None, None)
    assert ages.most_are_new is most_are_new
    pool = SENIORITY.choose(
        Pool(ask=ask, k=3, profiles=[each.profile for each in index.entries.values()], kept=range(older + 3)), ages
    )
    assert [pool.marks.get(each.id, UNMARKED).new for each in pool.profiles[older:]] == [not most_are_new] * 3


def test_a_flood_that_fills_the_window_leaves_the_places_to_older_ones_behind_it():
    texts = [f"pay a bill {n}" for n in range(90)]
    flood = [since(DAY_S).model_copy(update={"name": f"n{n}", "namespace": f"evil-{n}.org"}) for n in range(90)]
    flood = [a_profile(name=p.name, namespace=p.namespace, description=text).model_copy(
        update={"first_registered": p.first_registered}) for p, text in zip(flood, texts, strict=True)]  # fmt: skip
    honest = [a_profile(name=f"h{n}", description=f"bill {word}").model_copy(
        update={"first_registered": since(90 * DAY_S).first_registered})
        for n, word in enumerate(("of water", "in kind", "by mail", "to law", "as tender"))]  # fmt: skip
    others = [since(90 * DAY_S).model_copy(update={"name": f"o{n}"}) for n in range(90)]
    index, clock = indexed(*flood, *honest, *others), FakeClock(datetime.fromtimestamp(NOW_S, UTC).isoformat())
    pipeline = discover_over(index, policies=[SENIORITY], clock=clock)
    found = [each.candidate.profile for each in pipeline.answer(Query(query="pay a bill")).ranked]
    assert {each.id for each in honest} <= {each.id for each in found}


@pytest.mark.parametrize(
    ("request_text", "days_ago", "first"),
    [
        ("weather forecast", 1, "maps_weather"),
        ("weather forecast", 60, "weather_forecast"),
        ("weather_forecast", 1, "weather_forecast"),
        ("org.tools/weather_forecast", 1, "weather_forecast"),
    ],
)
def test_a_newcomer_named_as_the_words_of_a_request_comes_first_only_if_it_is_asked_for_by_name(
    request_text, days_ago, first
):
    empty = a_profile(name="weather_forecast", description="Does useful things for everybody, of all kinds, at once.",
                      namespace="org.tools")  # fmt: skip
    known = a_profile(name="maps_weather", description="Forecast of the weather.", namespace="com.maps")
    made = [(empty, days_ago), (known, 60)]
    index = indexed(
        *(each.model_copy(update={"first_registered": since(n * DAY_S).first_registered}) for each, n in made)
    )
    clock = FakeClock(datetime.fromtimestamp(NOW_S, UTC).isoformat())
    assert discover_over(index, clock=clock).answer(Query(query=request_text)).ranked[0].candidate.profile.name == first


@pytest.mark.parametrize(("share", "weak", "leads"), [(0.61, 0.05, True), (0.59, 0.05, False), (0.61, 0.5, False)])
@pytest.mark.parametrize("trust", [None, 90])
def test_an_established_one_leads_that_has_six_tenths_of_the_relevance_and_is_a_weak_match(trust, share, weak, leads):
    results = [
        Result(
            candidate=found(name, 0.5, trust=rated, new=new), score=score, signals={}, weights={}, relevance=relevance
        )
        for name, rated, new, score, relevance in (("b", None, True, 0.9, 0.8), ("a", trust, False, 0.5, 0.8 * share))
    ]
    ranked = Ranked(results=results, scoring=SCORING, thresholds=Thresholds(match=0.7, weak=weak), reranked=False)
    arranged = SENIORITY.arrange(ranked)
    assert [each.candidate.profile.name for each in arranged.results] == (["a", "b"] if leads else ["b", "a"])
    assert bool(arranged.notes) is leads
