"""Simulated rerankers err as they say, and a blend orders as the pipeline does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.studies.blends import (
    BLENDS,
    GOLD,
    RERANKERS,
    STEP,
    JudgedCandidate,
    NoisyReranker,
    candidates_of,
    first_of,
    match_at_1,
)
from experiments.tests.scripted_chat import asked
from mats.domain.capability.capability import Id
from mats.domain.learning.reliability import PAPER_TRUST
from mats.domain.ranking.blend import Scale, Signal
from mats.domain.shortlist.rank import Candidate, Scoring, rank
from mats.ports import Stored
from tests.builders import a_discover, a_profile
from tests.fakes import MemoryIndex

SCALE = Scale(c=0.5, lo=0.0, hi=1.0)


def judged(name, retrieval, *, gold=False, size=100, likeness=0.0):
    return JudgedCandidate(
        id=Id(f"n/{name}"),
        signals={Signal.RETRIEVAL: retrieval, Signal.BM25: retrieval / 2},
        is_gold=gold,
        card_bytes=size,
        likeness=likeness,
    )


def rng():
    return np.random.default_rng(1)


CANDIDATES = [judged("a", 0.9, size=300), judged("b", 0.2, gold=True), judged("c", 0.5, likeness=0.8)]
LISTS = st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.integers(1, 300)), min_size=1, max_size=15)


@given(rows=LISTS, name=st.sampled_from(sorted(RERANKERS)))
def test_scores_are_multiples_of_five_in_range(rows, name):
    candidates = [judged(str(n), r, gold=gold, size=size) for n, (r, gold, size) in enumerate(rows)]
    points = 100 * RERANKERS[name].scores(candidates, rng())
    assert points.min() >= 0
    assert points.max() <= 100
    assert np.round(points / STEP) * STEP == pytest.approx(points)


def test_a_judge_without_error_puts_gold_or_its_twin_first():
    seen = [100 * NoisyReranker().scores(CANDIDATES, np.random.default_rng(seed)) for seed in range(50)]
    assert {np.argmax(scores) for scores in seen} == {1, 2}
    assert all(scores[1] >= scores[0] for scores in seen)
    assert all(GOLD[0] <= scores[1] for scores in seen)
    assert all(scores[2] - scores[1] >= 5 for scores in seen if scores[2] > scores[1])


def test_a_judge_without_gold_among_the_candidates_scores_by_retrieval():
    pair = [judged("a", 0.0), judged("b", 1.0)]
    scores = np.mean([100 * NoisyReranker().scores(pair, np.random.default_rng(seed)) for seed in range(200)], axis=0)
    assert scores == pytest.approx([5, 55], abs=8)


def test_a_biased_judge_prefers_longer_cards():
    plain, biased = (NoisyReranker(bias=bias).scores(CANDIDATES, rng()) for bias in (0, 15))
    assert biased[0] > plain[0]
    assert biased[1] < plain[1]


def test_all_blends_are_compared_by_the_same_scores():
    found = match_at_1(NoisyReranker(constant=50), [CANDIDATES, []])
    assert {name: share["mean"] for name, share in found.items()} == dict.fromkeys(BLENDS, 0.0)
    found = match_at_1(RERANKERS["sd 0"], [CANDIDATES] * 20)
    assert found["llm alone"]["mean"] > found["no llm"]["mean"] == 0


@pytest.mark.parametrize("name", [name for name in BLENDS if name != "no llm"])
@given(rows=st.lists(st.tuples(st.floats(0, 9), st.floats(-1, 1), st.integers(0, 20)), min_size=1, max_size=8))
def test_a_blend_orders_as_the_pipeline_does(name, rows):
    found = [
        Candidate(profile=a_profile(name=f"t{n}"), bm25=bm25, cosine=cosine) for n, (bm25, cosine, _) in enumerate(rows)
    ]
    scores = [5 * five / 100 for *_, five in rows]
    scoring = Scoring(scale=SCALE, weights=BLENDS[name], trust=PAPER_TRUST)
    ranked = rank(found, {c.profile.id: s for c, s in zip(found, scores, strict=True)}, None, scoring)
    candidates = [
        JudgedCandidate(
            id=each.profile.id,
            signals={Signal.RETRIEVAL: SCALE.retrieval(each.bm25, each.cosine), Signal.BM25: SCALE.bm25(each.bm25)},
            is_gold=False,
            card_bytes=1,
            likeness=0.0,
        )
        for each in found
    ]
    assert first_of(candidates, np.array(scores), BLENDS[name]) == ranked[0].candidate.profile.id


def test_candidates_are_those_of_the_first_stage():
    index = MemoryIndex()
    profiles = [a_profile(name=name, description=f"refund {name} payment") for name in ("one", "two")]
    index.put([Stored(profile.model_copy(update={"rev": 1})) for profile in profiles])
    found = candidates_of(a_discover(index), asked("refund", profiles[0].id))
    gold, other = sorted(found, key=lambda each: not each.is_gold)
    assert (gold.is_gold, other.is_gold) == (True, False)
    assert gold.likeness == 0.0
    assert other.likeness > 0.3
    assert set(gold.signals) == {Signal.RETRIEVAL, Signal.BM25}
