"""BM25 over weighted fields (Robertson & Zaragoza 2009) with the idf of SQLite's FTS5: docs/decisions/0052."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from mats.domain.text.words import index_terms

K1, B = 1.2, 0.75
_LEAST_IDF = 1e-6


class TermCounts(NamedTuple):
    """How often each term occurs in a text, each occurrence counted by the weight of its field."""

    frequencies: Mapping[str, float]
    length: int  # Terms in all fields, each counted 1


def count_terms(fields: Mapping[str, str], weights: Mapping[str, float]) -> TermCounts:
    """The terms of a text in fields, with a weight for each field."""
    frequencies: dict[str, float] = {}
    length = 0
    for name, text in fields.items():
        for term in index_terms(text):
            frequencies[term] = frequencies.get(term, 0.0) + weights[name]
            length += 1
    return TermCounts(frequencies, length)


REFERENCE = 1_500  # Documents in which terms are counted at least: fewer say too little about how common a term is
_PRIOR, _PRIOR_HOLDING = 100, 0.5
"""Documents, and how many of them hold a term, that are added to a small registry for an estimate of shares."""


def in_reference(holding: int, documents: int) -> tuple[float, float]:
    """How many documents would hold a term in a registry of at least REFERENCE, and how many there are: 0080."""
    if documents >= REFERENCE:
        return holding, documents
    share = (holding + _PRIOR_HOLDING) / (documents + _PRIOR)
    return holding + (REFERENCE - documents) * share, REFERENCE


def idf(holding: int, documents: int) -> float:
    """The worth of a term that `holding` of all documents hold; hardly anything, but above 0, if it is most of them."""
    held, every = in_reference(holding, documents)
    return max(math.log((every - held + 0.5) / (held + 0.5)), _LEAST_IDF)
