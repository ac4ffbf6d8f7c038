"""Which established capability leads which newcomer, on both sides of each bound."""

from datetime import UTC, datetime

import pytest

from mats.domain.policies.seniority import Seniority
from mats.domain.search.blend import Opinion, Scoring, TrustRule, blend
from mats.domain.search.candidate import Candidate, Exactness, Marks
from mats.domain.search.scale import Scale
from mats.domain.search.shortlist import Ranked
from mats.domain.search.signals import PAPER_WEIGHTS
from mats.domain.search.verdict import Thresholds
from tests.builders import a_profile, rank

NOW_S = datetime(2026, 1, 20, tzinfo=UTC).timestamp()


def words(share: float) -> float:
    """The BM25 score that is worth this share, on the scale of `rank`."""
    return 0.5 * share / (1 - share)


def first(*, trust: int | None, ours: tuple[float, float], theirs: tuple[float, float], **marks: object) -> str:
    """The first of an established candidate and another, each with the worth of its words and its cosine."""
    established = Candidate(profile=a_profile(name="established", trust=trust), bm25=words(ours[0]), cosine=ours[1])
    other = Candidate(profile=a_profile(name="other"), bm25=words(theirs[0]), cosine=theirs[1], marks=Marks(**marks))
    return rank([established, other], {}, Seniority(50))[0].candidate.profile.name


@pytest.mark.parametrize(
    ("ours", "leads"),
    [(0.275, True), (0.265, False)],  # of 0.90, from 30 % on
)
def test_a_rated_one_leads_a_newcomer(ours, leads):
    found = first(trust=60, ours=(ours, ours), theirs=(0.9, 0.9), new=True)
    assert (found == "established") is leads


@pytest.mark.parametrize(
    ("cosine", "marks", "leads"),
    [
        (0.50, {"new": True}, True),  # 0.33 of 0.75, as near in meaning: from 40 % on
        (0.49, {"new": True}, False),  # farther in meaning: from 70 % on
        (0.49, {"new": True, "echo": True}, True),  # from 30 % on
    ],
)
def test_an_older_one_leads_a_newcomer_by_meaning_or_an_echo(cosine, marks, leads):
    found = first(trust=None, ours=(0.66 - cosine, cosine), theirs=(0.9999, 0.5), **marks)
    assert (found == "established") is leads


def test_none_leads_that_is_no_match_or_hardly_relevant_beside_the_other():
    assert first(trust=90, ours=(0.2, 0.2), theirs=(0.33, 0.33), new=True) == "other"  # a relevance of 0.08, no match
    pair = [
        Candidate(profile=a_profile(name=name, trust=trust), bm25=None, cosine=cosine, marks=Marks(new=trust is None))
        for name, trust, cosine in (("established", 90, 0.205), ("other", None, 0.6))
    ]
    scoring = Scoring(
        scale=Scale(c=0.5, lo=0.0, hi=1.0), weights=PAPER_WEIGHTS, trust=TrustRule(prior=50, proportional=True)
    )
    results = blend(pair, Opinion(), scoring)
    ranked = Ranked(results=results, scoring=scoring, thresholds=Thresholds(match=0.7, weak=0.05), reranked=False)
    assert [each.relevance for each in results] == pytest.approx([0.924, 0.081], abs=0.01)  # less than a tenth
    assert Seniority(50).arrange(ranked).results[0].id == pair[1].id


def test_an_exact_match_keeps_its_place():
    assert first(trust=60, ours=(0.4, 0.4), theirs=(0.44, 0.44), new=True) == "established"
    assert first(trust=60, ours=(0.4, 0.4), theirs=(0.44, 0.44), new=True, exact=Exactness.NAME) == "other"
