"""The rule for trust."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.learning.reliability import PAPER_TRUST, TrustRule
from mats.domain.ranking.blend import PAPER_WEIGHTS, Scale
from mats.domain.shortlist.rank import Candidate, Scoring, rank
from tests.builders import a_profile

PROPORTIONAL = TrustRule(prior=50, proportional=True)
trusts = st.none() | st.integers(0, 100)
relevances = st.floats(0, 1)


def ranked(rule: TrustRule, trust_and_relevance: list[tuple[int | None, float]]) -> list[tuple[int, float]]:
    """Position in the list given and score of each, best first."""
    profiles = [a_profile(name=f"{n:02}", trust=trust) for n, (trust, _) in enumerate(trust_and_relevance)]
    scores = {profile.id: relevance for profile, (_, relevance) in zip(profiles, trust_and_relevance, strict=True)}
    candidates = [Candidate(profile=profile, bm25=None, cosine=None) for profile in profiles]
    scoring = Scoring(scale=Scale(c=1, lo=0, hi=1), weights=PAPER_WEIGHTS, trust=rule)
    return [(int(r.candidate.profile.name), r.score) for r in rank(candidates, scores, None, scoring)]


@pytest.mark.parametrize(
    ("rule", "trust", "prior", "expected"),
    [
        (PROPORTIONAL, 80, 50, 0.40),
        (PROPORTIONAL, 0, 50, 0.0),
        (PROPORTIONAL, None, 50, 0.25),
        (PROPORTIONAL, None, None, None),
        (PAPER_TRUST, 80, None, 0.80),
        (PAPER_TRUST, None, None, None),
    ],
)
def test_quality_of_half_a_relevance(rule, trust, prior, expected):
    assert rule.quality(trust, prior, 0.5) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("assigned", [[], [None], [None, None]])
def test_nobody_takes_the_prior_where_nobody_is_rated(assigned):
    assert PROPORTIONAL.prior_among(assigned) is None


@pytest.mark.parametrize(("rule", "expected"), [(PROPORTIONAL, 50), (PAPER_TRUST, None)])
def test_the_unrated_take_the_prior_beside_a_rated_one(rule, expected):
    assert rule.prior_among([None, 0]) == expected


@given(st.integers(51, 100), st.lists(relevances, min_size=2, max_size=2))
def test_trust_above_the_prior_never_costs_a_place(trust, two):
    """By the paper's rule it does: a given trust below the candidate's own relevance lowers its score."""
    unrated = [n for n, _ in ranked(PROPORTIONAL, [(None, two[0]), (None, two[1])])]
    rated = [n for n, _ in ranked(PROPORTIONAL, [(trust, two[0]), (None, two[1])])]
    assert rated.index(0) <= unrated.index(0)


@given(st.lists(st.tuples(trusts, relevances), min_size=1, max_size=6))
def test_what_is_not_relevant_scores_nothing_whatever_its_trust(candidates):
    scores = dict(ranked(PROPORTIONAL, [(100, 0.0), *candidates]))
    assert scores[0] == 0.0


@given(st.lists(st.tuples(st.integers(0, 100), relevances), min_size=2, max_size=6))
def test_more_trust_and_more_relevance_is_never_below(candidates):
    order = [n for n, _ in ranked(PROPORTIONAL, candidates)]
    for one, other in product(range(len(candidates)), repeat=2):
        (trust, relevance), (less_trust, less_relevance) = candidates[one], candidates[other]
        if trust > less_trust and relevance - less_relevance > 1e-9:
            assert order.index(one) < order.index(other)


@pytest.mark.parametrize(("prior", "unrated"), [(0, 0), (30, 30), (None, 50)])
def test_the_unrated_have_the_prior_or_50_beside_near_duplicates(prior, unrated):
    assert TrustRule(prior=prior, proportional=True).unrated_trust == unrated
