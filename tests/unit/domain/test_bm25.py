"""Counting of terms in weighted fields, and their worth."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.ranking.blend import count_terms, idf, in_reference

WEIGHTS = {"name": 1.0, "other": 0.5}
TEXTS = st.lists(st.sampled_from(["refund", "refunds", "a", "Card", "e-mail", "支付宝", "café"]), max_size=8).map(
    " ".join
)


def test_a_word_counts_as_its_field_weighs_and_once_in_the_length():
    counts = count_terms({"name": "getRefund refunds", "other": "Refunded, or not"}, WEIGHTS)
    assert counts.frequencies == {"getrefund": 1.0, "refund": 1.5, "or": 0.5, "not": 0.5}
    assert counts.length == 5


@given(TEXTS, TEXTS)
def test_frequencies_of_equal_weights_sum_to_the_length(name: str, other: str):
    counts = count_terms({"name": name, "other": other}, {"name": 1.0, "other": 1.0})
    assert sum(counts.frequencies.values()) == counts.length


@given(TEXTS, TEXTS)
def test_a_text_counts_alike_in_one_piece_and_in_two(name: str, other: str):
    apart = count_terms({"name": name, "other": other}, {"name": 2.0, "other": 2.0})
    assert count_terms({"name": f"{name} {other}"}, {"name": 2.0}) == apart


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_rarer_a_term_the_more_it_is_worth(counts: tuple[int, int]):
    holding, documents = counts
    assert 0 < idf(holding, documents) <= idf(max(holding - 1, 0), documents)


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
