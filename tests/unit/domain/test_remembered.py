"""Votes of remembered requests: who counts, and what they move."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import SHARED, TAUGHT, Event, ReportedAnswer, asking
from mats.domain.learning.remembered import Near, Remembered, remember
from mats.domain.learning.voting import RULE, Votes, crowding, fuse_votes, limit_rises, shifts, vote
from tests.builders import a_profile
from tests.contract.learning import PAY, SHIP, WRAP, a_receipt

OTHER = Id("com.acme/other")


def a_memory(name: str = "m1", caller: str = "ann", used=(PAY,), passed=(), **changes) -> Remembered:
    fields = {
        "query_id": name, "text": f"text of {name}", "caller": caller, "audiences": frozenset(), "at": "2026-01-01",
        "used": frozenset(used), "passed_over": frozenset(passed),
    }  # fmt: skip
    return Remembered(**{**fields, **changes})


def near(*memories: Remembered, similarity: float = 0.8) -> list[Near]:
    return [Near(similarity - position / 1_000, memory) for position, memory in enumerate(memories)]


def test_a_vote_is_on_the_text_that_was_there():
    replaced = {PAY: a_profile().model_copy(update={"first_registered": "2026-02-01T00:00:00+00:00"})}
    [old, new] = [one.awake(replaced) for one in near(
        a_memory(passed=[OTHER]), a_memory("m2", at="2026-03-01T00:00:00+00:00"),
    )]  # fmt: skip
    assert (old.memory.used, old.memory.passed_over) == (frozenset(), {OTHER})
    assert new.memory.used == {PAY}


def an_answer(*outcomes: tuple[Id, Event], **changes) -> ReportedAnswer:
    return ReportedAnswer(receipt=a_receipt(**changes), events={id: frozenset({event}) for id, event in outcomes})


@pytest.mark.parametrize(
    ("outcomes", "used", "passed_over"),
    [
        ([(SHIP, Event.SUCCEEDED)], {SHIP}, {PAY}),
        ([(PAY, Event.SUCCEEDED), (SHIP, Event.FAILED), (WRAP, Event.WRONG)], {PAY}, {SHIP, WRAP}),
        ([(PAY, Event.SELECTED), (SHIP, Event.SUCCEEDED)], {SHIP}, set()),
    ],
    ids=["shown before the last used one", "failed or wrong wherever it was shown", "chosen"],
)
def test_what_was_used_and_what_was_passed_over(outcomes, used, passed_over):
    memory = remember(an_answer(*outcomes))
    assert (memory.used, memory.passed_over) == (used, passed_over)


@pytest.mark.parametrize("answer", [an_answer((PAY, Event.SELECTED)), an_answer((PAY, Event.SUCCEEDED), vector=None)])
def test_only_a_success_with_a_vector_is_remembered(answer: ReportedAnswer):
    assert remember(answer) is None


def test_what_a_filter_chose_is_remembered_only_if_an_operator_confirms_it():
    answer = an_answer((PAY, Event.SUCCEEDED), narrowed=True)
    assert remember(answer) is None
    assert remember(replace(answer, confirmed=True)) is not None


FOUND = [Id(f"com.acme/n{n:02}") for n in range(40)]


def crowd(size: int, id: Id, **changes) -> list[Near]:
    return near(*(a_memory(f"m{n}", f"caller {n}", (id,), **changes) for n in range(size)))


@pytest.mark.parametrize(
    ("callers", "place", "reached"), [(2, 16, True), (2, 17, False), (5, 22, True), (5, 23, False)]
)
def test_others_lift_only_what_the_search_finds_within_reach_of_their_number(callers, place, reached):
    votes = vote(crowd(callers, FOUND[place]), "eve")
    assert (FOUND[place] in votes.within_reach(FOUND, 15).used) is reached
    assert not votes.within_reach(FOUND[:place], 15).used


def test_the_caller_itself_and_operators_lift_what_the_search_did_not_find():
    for one, asking_caller in ((a_memory(), "ann"), (a_memory(confirmed=True), "eve")):
        votes = vote(near(one), asking_caller)
        assert votes.within_reach(FOUND, 15).used


@pytest.mark.parametrize("place", range(15))
@pytest.mark.parametrize("callers", [2, 3, 5])
def test_others_lift_a_capability_by_at_most_two_places_for_each_caller_beside_the_first(callers, place):
    mixtures = {id: 0.5 - 0.01 * n for n, id in enumerate(FOUND[:15])}
    votes = vote(crowd(callers, FOUND[place]), "eve")
    moved = shifts(mixtures, votes)
    after = sorted(mixtures, key=lambda id: -(mixtures[id] + moved[id]))
    order = limit_rises(FOUND[:15], after, {id: votes.rise_of(id) for id in FOUND[:15]})
    assert place - 2 * (callers - 1) <= order.index(FOUND[place]) <= place


def test_everybody_behind_one_token_has_no_reports_of_their_own():
    assert [asking(caller) for caller in ("ann", SHARED)] == ["ann", ""]
    assert vote(near(a_memory(caller=SHARED)), asking(SHARED)) is None


def test_the_own_request_counts_at_once_and_that_of_another_once_a_second_caller_agrees_or_an_operator():
    one, other, own = a_memory("m1", "ann"), a_memory("m2", "bob"), a_memory("m3", "ann")
    votes = vote(near(one), "ann")
    assert votes.used[PAY] == votes.weight
    assert vote(near(one, own), "eve") is None
    assert vote(near(one, other), "eve") is not None
    assert vote(near(a_memory(confirmed=True)), "eve") is not None


def test_being_passed_over_counts_only_if_two_callers_agree():
    alone = near(a_memory("m1", "ann", passed={SHIP}), a_memory("m2", "bob"))
    both = near(a_memory("m1", "ann", passed={SHIP}), a_memory("m2", "bob", passed={SHIP}))
    one, two = vote(alone, "eve"), vote(both, "eve")
    assert (set(one.passed_over), set(two.passed_over)) == (set(), {SHIP})


def test_one_other_caller_has_few_of_the_votes():
    crowd = [a_memory(f"c{n}", "mallory", {OTHER}) for n in range(30)]
    honest = [a_memory("h1", "ann"), a_memory("h2", "bob")]
    listed = near(*crowd, *honest)
    assert crowding(listed, "eve") == {"mallory"}
    votes = vote(listed, "eve")
    assert set(votes.used) == {PAY}
    assert crowding(listed, "mallory") == frozenset()


def test_texts_are_for_those_who_share_the_audiences():
    votes = vote(near(a_memory("m1", audiences=frozenset({"staff"})), a_memory("m2", used={PAY, SHIP})), "ann")
    guest, staff = votes.used_for(PAY, ()), votes.used_for(PAY, {"staff", "eu"})
    assert (guest.requests, guest.callers, guest.texts) == (2, 1, ("text of m2",))
    assert staff.texts == ("text of m1", "text of m2")
    assert votes.used_for(WRAP, ()) is None


def some_votes(**changes) -> Votes:
    fields = {"nearest": 0.9, "weight": 1.0, "used": {PAY: 1.0}, "passed_over": {}, "near": (), "reported": {PAY}}
    return Votes(**{"similarity": {PAY: changes.get("nearest", 0.9)}, **fields, **changes})


def a_lesson(used=(PAY,), name: str = "one") -> Remembered:
    return a_memory(f"{TAUGHT}{name}", "", used, confirmed=True)


def test_votes_bring_in_what_the_search_did_not_find():
    assert max(scores := fuse_votes({SHIP: 0.6, WRAP: 0.4}, some_votes()), key=lambda id: scores[id]) == PAY


def test_what_was_used_for_other_requests_only_gives_way_to_what_is_unknown():
    by_others = some_votes(reported={PAY, SHIP})
    assert fuse_votes({SHIP: 0.5, WRAP: 0.5}, by_others)[SHIP] == 0.5  # else their praise would put it out
    scores = fuse_votes({SHIP: 0.5, WRAP: 0.5}, replace(by_others, certain={SHIP}))
    assert scores[SHIP] < scores[WRAP] == 0.5


def test_a_request_seen_before_raises_what_served_it():
    moved = shifts({SHIP: 0.4, PAY: 0.38}, some_votes())
    assert 0.4 + moved[SHIP] < 0.38 + moved[PAY]


def test_a_far_request_does_not_displace_what_is_unknown_and_far_ahead():
    moved = shifts({SHIP: 0.6, PAY: 0.3}, some_votes(nearest=0.35))
    assert 0.6 + moved[SHIP] > 0.3 + moved[PAY]


@pytest.mark.parametrize(("similarity", "least", "most"), [(0.45, -1, 0), (0.55, -1, 0.1), (0.9, 0.3, 0.8)])
def test_a_request_lifts_what_it_is_near_to(similarity: float, least: float, most: float):
    moved = shifts({SHIP: 0.9, PAY: 0.1}, some_votes(nearest=similarity, sure=[{PAY}]))
    assert least <= moved[PAY] <= most + 1e-9


def test_where_such_requests_ask_for_the_same_again_a_far_one_lifts_too():
    again = some_votes(nearest=0.45, sure=[{PAY}] * 5, repeated={PAY})
    assert shifts({SHIP: 0.9, PAY: 0.1}, again)[PAY] > 0.2


def test_callers_do_not_outvote_what_an_operator_taught():
    crowd = [a_memory(f"c{n}", f"caller {n % 9}", {OTHER}, confirmed=True) for n in range(30)]
    votes = vote([*near(*crowd), Near(0.75, a_lesson())], "eve")
    assert votes.used[PAY] > 0.3 * votes.weight
    assert votes.sure
    assert {PAY} not in votes.sure


@given(st.floats(-1, RULE.taught, exclude_max=True))
def test_below_the_floor_nothing_votes_and_what_an_operator_taught_is_silent_for_other_requests(similarity: float):
    assert vote([Near(similarity, a_lesson())], "eve") is None
    assert vote(near(a_memory(), similarity=RULE.floor - 0.01), "ann") is None


def test_what_is_unknown_falls_further_if_it_was_passed_over():
    mixtures = {SHIP: 0.4, WRAP: 0.4, PAY: 0.4}
    moved = shifts(mixtures, some_votes(passed_over={SHIP: 1.0}))
    assert moved[SHIP] < moved[WRAP]


def test_the_unknown_keep_less_where_such_requests_ask_for_the_same_again():
    mixtures = {PAY: 0.4, WRAP: 0.4}
    again = some_votes(nearest=0.3, sure=[{PAY}] * 5, repeated={PAY})
    once = some_votes(nearest=0.3, sure=[{PAY}] * 5)
    plain = some_votes(nearest=0.3)
    assert again.repeat_odds > plain.repeat_odds == 1 > once.repeat_odds
    lead = [moved[PAY] - moved[WRAP] for moved in (shifts(mixtures, each) for each in (again, plain, once))]
    assert lead == sorted(lead, reverse=True)
    assert lead[0] > lead[2]


def test_only_own_and_confirmed_requests_tell_how_often_the_same_is_asked_for():
    listed = near(a_memory("m1", "ann"), a_memory("m2", "bob"), a_memory("m3", "cy", {SHIP}, confirmed=True))
    votes = vote(listed, "ann")
    assert votes.sure == [{PAY}, {SHIP}]
    counted = votes.with_counts({PAY: 1, SHIP: 2, WRAP: 0})
    assert (counted.reported, counted.repeated) == ({PAY, SHIP, WRAP}, {SHIP})


ids = st.sampled_from([PAY, SHIP, WRAP, OTHER])
unit = st.floats(0, 1, allow_nan=False)


@given(
    mixtures=st.dictionaries(ids, unit, min_size=1),
    used=st.dictionaries(ids, st.floats(0.001, 20), min_size=1),
    passed=st.dictionaries(ids, st.floats(0, 20)),
    reported=st.sets(ids),
    nearest=st.floats(-1, 1),
    sure=st.lists(st.sets(ids, min_size=1), max_size=20),
    repeated=st.sets(ids),
)
@example(
    mixtures={PAY: 0.0, SHIP: 0.0, WRAP: 1.0}, used={PAY: 1.0}, passed={}, reported=set(), nearest=0.0,
    sure=[], repeated=set(),
)  # fmt: skip
def test_shifts_are_finite_and_keep_equal_candidates_equal(mixtures, used, passed, reported, nearest, sure, repeated):
    votes = some_votes(
        nearest=nearest, weight=max(*used.values(), *passed.values(), 1.0), used=used, passed_over=passed,
        reported=frozenset(reported), sure=sure, repeated=repeated,
    )  # fmt: skip
    moved = shifts(mixtures, votes)
    assert all(abs(value) < 2 for value in moved.values())
    assert moved.keys() in (set(), mixtures.keys())
    unknown = [id for id in moved if id not in used and id not in reported and id not in passed]
    assert len({round(moved[id], 9) for id in unknown}) <= 1
    assert all(moved[id] <= 1e-9 for id in unknown)  # a use of one capability raises no other


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sets(ids, min_size=1)), max_size=8), st.sampled_from("abcx"))
def test_no_vote_counts_that_one_other_caller_alone_gives(said, asking):
    memories = [a_memory(f"m{n}", caller, used) for n, (caller, used) in enumerate(said)]
    votes = vote(near(*memories), asking)
    for id in votes.used if votes else ():
        callers = {caller for caller, used in said if id in used}
        assert asking in callers or len(callers) > 1
