"""Candidates of several texts, and the steps that each of them serves."""

from mats.domain.search.candidate import Candidate
from mats.domain.search.scale import Scale
from mats.usecases.found import merge_measured
from tests.builders import a_profile

SCALE = Scale(c=10.0, lo=0.0, hi=1.0)  # a cosine is its mixture


def test_a_candidate_serves_the_steps_to_which_it_is_about_as_relevant():
    """Of relevance 0.78 to the first step; to the second of 0.74, 95 % of it, or 0.66, 85 %."""
    near, far = a_profile(name="near"), a_profile(name="far")
    cosines = {"whole": (0.1, 0.1), "first": (0.5, 0.5), "second": (0.483, 0.453)}
    by_text = [
        [Candidate(profile=profile, bm25=None, cosine=cosine) for profile, cosine in zip((near, far), row, strict=True)]
        for row in cosines.values()
    ]
    candidates, steps = merge_measured(list(cosines), by_text, SCALE)
    assert [candidate.cosine for candidate in candidates] == [0.5, 0.5]
    assert steps.texts == ["first", "second"]
    assert steps.served == {near.id: [0, 1], far.id: [0]}
