"""BM25 over postings in memory against BM25 computed document by document."""

from copy import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mats.adapters.sqlite.postings import Postings, pack
from mats.domain.profile.index_fields import count_terms
from mats.domain.search.bm25 import K1, B, idf

WORDS = ("red", "blue", "card", "refund", "mail")
WEIGHTS = {"name": 1.0, "other": 0.5}
FIELDS = st.fixed_dictionaries(dict.fromkeys(WEIGHTS, st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)))
BATCHES = st.lists(st.dictionaries(st.integers(1, 40), st.none() | FIELDS, max_size=6), max_size=12)
"""Of each batch: the rows that change; None: the row is dropped."""


def document(row: int, fields: dict[str, str]):
    return pack(row, count_terms(fields, WEIGHTS))


def put(postings: Postings, rows: dict[int, dict[str, str] | None]) -> None:
    for row, fields in rows.items():
        if fields is None:
            postings.drop(row)
    postings.put([document(row, fields) for row, fields in rows.items() if fields is not None])


def naive(documents: dict[int, dict[str, str]], words: list[str]) -> dict[int, float]:
    counts = {row: count_terms(fields, WEIGHTS) for row, fields in documents.items()}
    mean = sum(count.length for count in counts.values()) / max(len(counts), 1)
    scores = dict.fromkeys(documents, 0.0)
    for word in dict.fromkeys(words):
        holding = [row for row, count in counts.items() if word in count.frequencies]
        for row in holding:
            frequency = counts[row].frequencies[word]
            length = counts[row].length / mean
            scores[row] += (
                idf(len(holding), len(counts)) * frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length))
            )
    return scores


@settings(max_examples=40)
@given(BATCHES, st.lists(st.sampled_from(WORDS), max_size=4))
def test_scores_are_those_of_every_document_looked_at(batches, words):
    postings, documents = Postings(), {}
    for rows in batches:
        put(postings, rows)
        documents |= rows
    present = {row: fields for row, fields in documents.items() if fields is not None}
    found = postings.scores(words)
    assert {row: float(found[row]) for row in present} == pytest.approx(naive(present, words), rel=1e-6)
    assert sum(found > 0) == sum(score > 0 for score in naive(present, words).values())


@settings(max_examples=40)
@given(BATCHES, BATCHES)
def test_a_copy_and_its_original_change_apart(before, after):
    one = Postings()
    for rows in before:
        put(one, rows)
    copied, expected = copy(one), one.scores(WORDS).tolist()
    for rows in after:
        put(copied, rows)
    assert one.scores(WORDS).tolist() == expected


def test_many_single_changes_leave_few_segments():
    postings = Postings()
    for row in range(1, 2_000):
        put(postings, {row % 700 + 1: {"name": f"red n{row}", "other": ""}})
    assert len(postings._segments) <= 6
    assert sum(len(segment.rows) for segment in postings._segments) <= 3 * 1_400
