"""Fusion, the absolute scale, the blend and the order."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Id, Kind
from mats.domain.profile.index_fields import count_terms
from mats.domain.search.bm25 import idf, in_reference
from mats.domain.search.scale import Scale, best_first, fuse
from mats.domain.search.signals import (
    PAPER_WEIGHTS,
    Signal,
    fallback_weights,
    intent,
    shares,
    weighted_mean,
)
from mats.domain.search.verdict import WEAK_UNREAD, Thresholds, Verdict, VerdictThresholds

LLM, BM25, QUALITY, INTENT, RETRIEVAL = Signal.LLM, Signal.BM25, Signal.QUALITY, Signal.INTENT, Signal.RETRIEVAL
MEASURED = (LLM, BM25, QUALITY, INTENT)

units = st.floats(0, 1)
signals_of_one = st.dictionaries(st.sampled_from(MEASURED), units)
ids = st.text("abc/.", min_size=1, max_size=3).map(Id)
counts = st.integers(0, 1_000)
scales = st.builds(
    lambda c, lo, width: Scale(c=c, lo=lo, hi=lo + width), st.floats(0.1, 100), st.floats(-1, 0.9), st.floats(0.01, 1)
)
bm25_scores, cosines = st.floats(0, 1_000), st.floats(-1, 1)


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ((), 0.0),
        ((LLM,), 0.8),
        ((LLM, BM25), 42 / 55),
        ((LLM, QUALITY, INTENT), 73 / 95),
        ((LLM, BM25, QUALITY, INTENT), 75 / 100),
    ],
    ids=lambda value: "+".join(value) or "nothing" if isinstance(value, tuple) else "",
)
def test_a_blend_equals_the_calculation_by_hand(present, expected):
    values = {LLM: 0.8, BM25: 0.4, QUALITY: 0.6, INTENT: 1.0}
    signals = {signal: values[signal] for signal in present}
    assert weighted_mean(signals, shares(signals, PAPER_WEIGHTS)) == pytest.approx(expected)


@given(signals_of_one)
def test_a_signal_without_weight_has_no_share(signals):
    only_model = {LLM: 0.5, BM25: 0.0}
    assert shares(signals, only_model) == ({LLM: 1.0} if LLM in signals else {})


def test_retrieval_takes_over_the_whole_weight_of_a_missing_model():
    assert fallback_weights(PAPER_WEIGHTS) == {RETRIEVAL: 0.50, BM25: 0.05, QUALITY: 0.30, INTENT: 0.15}
    both = {LLM: 0.50, RETRIEVAL: 0.20, QUALITY: 0.30, INTENT: 0.15}
    assert fallback_weights(both) == {RETRIEVAL: 0.70, QUALITY: 0.30, INTENT: 0.15}


@pytest.mark.parametrize(
    ("inferred", "kind", "type_tags", "expected"),
    [
        ("payment", Kind.TOOL, ("payment", "finance"), 1.0),
        ("tool", Kind.TOOL, ("payment",), 0.5),
        ("agent", Kind.TOOL, ("payment",), 0.0),
        ("agent", Kind.TOOL, (), 0.0),
        ("travel", Kind.TOOL, ("payment",), 0.0),
        ("tool", Kind.TOOL, (), 0.5),
        ("travel", Kind.TOOL, (), 0.25),
    ],
)
def test_intent_is_one_for_a_tag_half_for_a_kind_and_a_prior_for_the_untagged(inferred, kind, type_tags, expected):
    assert intent(inferred, kind=kind, type_tags=type_tags) == expected


@given(st.dictionaries(ids, st.sampled_from([0.0, 0.5, 1.0])), st.data())
def test_best_first_puts_higher_scores_first_and_equal_ones_by_id(scores, data):
    ordered = best_first(scores)
    assert sorted(ordered) == sorted(scores)
    assert all((-scores[a], a) < (-scores[b], b) for a, b in pairwise(ordered))
    assert best_first(dict(data.draw(st.permutations(list(scores.items()))))) == ordered


@given(st.dictionaries(ids, st.integers(1, 100), min_size=1), st.floats(0.05, 0.95))
def test_the_order_of_one_list_stands_without_the_other(percent, share):
    scores = {id: value / 100 for id, value in percent.items()}
    for fused, most in (
        (fuse(scores, {}, lexical_share=share), share),
        (fuse({}, scores, lexical_share=share), 1 - share),
    ):
        assert best_first(fused) == best_first(scores)
        assert max(fused.values()) == pytest.approx(most)


def test_a_fusion_equals_the_calculation_by_hand():
    lexical = {Id("a"): 4.0, Id("b"): 2.0}
    neural = {Id("b"): 0.9, Id("c"): 0.7, Id("d"): 0.5}
    fused = fuse(lexical, neural, lexical_share=0.6)
    assert fused == pytest.approx({"a": 0.6 * 1, "b": 0.6 * 0.5 + 0.4 * 1, "c": 0.4 * 0.5, "d": 0.0})


@given(scales, *[st.tuples(values, values).map(sorted) for values in (bm25_scores, cosines, counts)])
def test_no_higher_measurement_lowers_retrieval(scale, scores, cosines, pairs):
    (score, more_score), (cosine, more_cosine), (few, many) = scores, cosines, pairs
    assert scale.retrieval(score, cosine, few) <= scale.retrieval(more_score, cosine, few)
    assert scale.retrieval(score, cosine, few) <= scale.retrieval(score, more_cosine, few)
    assert scale.retrieval(score, cosine, few) <= scale.retrieval(score, cosine, many) <= 1
    assert scale.retrieval(score, None) <= scale.retrieval(more_score, None)
    assert scale.retrieval(None, cosine) <= scale.retrieval(None, more_cosine)


@pytest.mark.parametrize(
    ("score", "cosine", "pairs", "expected"),
    [
        (20, None, 0, 0.5),
        (60, None, 0, 0.75),
        (None, 0.2, 0, 0.0),
        (None, 0.8, 0, 1.0),
        (None, -1, 0, 0.0),
        (20, 0.8, 0, 0.75),
        (20, 0.5, 0, 0.5),
        (20, 0.5, 3, 0.6),
        (20, None, 3, 0.6),
        (0, 0.0, 3, 0.2),
        (None, 0.5, 3, 0.5),
        (None, None, 3, None),
    ],
)
def test_a_mixture_equals_the_calculation_by_hand_and_pairs_count_with_a_lexical_score_only(
    score, cosine, pairs, expected
):
    measured = Scale(c=20, lo=0.2, hi=0.8, pairs_share=0.4).mix(score, cosine, pairs)
    assert measured == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("mixture", "expected"), [(0.4, 0.5), (0.5, 0.7311), (0.3, 0.2689), (1.0, 0.9975), (0.0, 0.018)]
)
def test_retrieval_is_a_logistic_function_of_the_mixture(mixture, expected):
    scale = Scale(c=20, lo=0.0, hi=1.0, even=0.4, spread=0.1)
    assert scale.retrieval(None, mixture) == pytest.approx(expected, abs=5e-5)


def test_the_verdict_follows_the_most_relevant_candidate():
    found = [Thresholds(match=0.7, weak=0.4).verdict(best) for best in (None, 0.0, 0.39, 0.4, 0.69, 0.7, 1.0)]
    assert found == [Verdict.NONE] * 3 + [Verdict.WEAK] * 2 + [Verdict.MATCH] * 2


@pytest.mark.parametrize(("usual", "weak"), [(0.01, WEAK_UNREAD), (0.3, 0.3)])
def test_what_is_no_words_has_to_be_nearer_to_be_weak(usual: float, weak: float):
    own = Thresholds(match=0.7, weak=usual)
    thresholds = VerdictThresholds(reranked=Thresholds(match=0.6, weak=0.0), hybrid=own, lexical=own)
    unread = thresholds.of(reranked=False, compared=True, understood=False)
    assert (unread.match, unread.weak) == (0.7, weak)


WEIGHTS = {"name": 1.0, "other": 0.5}


def test_a_word_counts_as_its_field_weighs_and_once_in_the_length():
    counts = count_terms({"name": "getRefund refunds", "other": "Refunded, or not"}, WEIGHTS)
    assert counts.frequencies == {"getrefund": 1.0, "refund": 1.5, "or": 0.5, "not": 0.5}
    assert counts.length == 5


@pytest.mark.parametrize(("holding", "worth"), [(1, math.log(1999.5 / 1.5)), (1001, 1e-6), (2000, 1e-6)])
def test_a_term_of_most_documents_is_worth_hardly_anything(holding: int, worth: float):
    assert idf(holding, 2_000) == worth


@given(st.integers(1, 2_000))
def test_a_rare_term_never_loses_worth_as_a_registry_grows(documents: int):
    assert idf(1, 1) > idf(500, 1_500)
    assert idf(1, documents) <= idf(1, documents + 1)


@pytest.mark.parametrize(("holding", "documents", "held"), [(1, 12, 21), (6, 12, 92), (1, 300, 5.5), (7, 2_000, 7)])
def test_a_small_registry_counts_as_a_part_of_a_larger_one(holding: int, documents: int, held: float):
    assert in_reference(holding, documents) == (pytest.approx(held, rel=0.02), max(documents, 1_500))
