"""Newcomers, and who leads them."""

from datetime import UTC, datetime

import pytest

from mats.domain.policies.seniority import Seniority, find_newcomers, limit_newcomers
from mats.domain.profile.profile import DAY_S, Profile
from mats.domain.search.candidate import Candidate, Exactness, Marks
from tests.builders import a_profile, rank

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
        (found("a", 0.25, trust=80), found("b", 0.55, new=True), True),
        (found("a", 0.15, trust=80), found("b", 0.55, new=True), False),
        (found("a", 0.25, trust=80), found("b", 0.60, echo=True), False),
        (found("a", 0.25, trust=80), found("b", 0.60, new=True, echo=True), True),
        (found("a", 0.25, trust=80), found("b", 0.60, new=True, echo=True, exact=Exactness.NAME), False),
        (found("a", 0.05, trust=80), found("b", 0.12, new=True), False),
        (found("a", 0.37, trust=80, unfit="needs a key"), found("b", 0.40, new=True), False),
        (found("a", 0.30), found("b", 0.55, new=True), False),
        (found("a", 0.45), found("b", 0.55, new=True), True),
        (found("a", 0.45), found("b", 0.55), False),
    ],
    ids=[
        "rated and nearly as near", "rated beside a newcomer", "hardly relevant beside it", "rated beside an echo",
        "rated beside a new echo", "an exact name is not led", "below a weak match", "what cannot be called",
        "older and far", "older and near", "equally old",
    ],
)  # fmt: skip
def test_a_trusted_or_older_one_leads_if_it_is_relevant_itself(trusted: Candidate, other: Candidate, leads: bool):
    assert names(trusted, other) == (["a", "b"] if leads else ["b", "a"])


def test_a_reranker_has_read_both_so_nobody_is_led():
    candidates = found("a", 0.5, trust=80), found("b", 0.5, new=True)
    assert names(*candidates, scores={candidates[0].id: 0.5, candidates[1].id: 0.9}) == ["b", "a"]


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


@pytest.mark.parametrize(("behind", "left"), [(0, 3), (15, 8), (5, 5)])
def test_newcomers_have_a_fifth_of_the_places_or_as_many_as_are_usual_up_to_half(behind: int, left: int):
    new = {*range(15), *range(15, 15 + behind)}
    kept, spare = limit_newcomers(range(30), new, of=30, k=15, share=0.2)
    assert len([position for position in kept if position in new]) == left
    assert sorted([*kept, *spare]) == list(range(30))
