"""BM25 over weighted fields (Robertson & Zaragoza 2009), with the idf of SQLite's FTS5: docs/decisions/0052."""

import math

K1, B = 1.2, 0.75
_LEAST_IDF = 1e-6
REFERENCE = 1_500  # Documents in which terms are counted at least: fewer say too little about how common a term is
_PRIOR, _PRIOR_HOLDING = 100, 0.5
"""Documents, and how many of them hold a term, that are added to a small registry for an estimate of shares."""


def in_reference(holding: int, documents: int) -> tuple[float, float]:
    """How many documents would hold a term in a registry of at least REFERENCE, and how many there are: 0017."""
    if documents >= REFERENCE:
        return holding, documents
    share = (holding + _PRIOR_HOLDING) / (documents + _PRIOR)
    return holding + (REFERENCE - documents) * share, REFERENCE


def idf(holding: int, documents: int) -> float:
    """The worth of a term that `holding` of all documents hold; hardly anything, but above 0, if it is most of them."""
    held, every = in_reference(holding, documents)
    return max(math.log((every - held + 0.5) / (held + 0.5)), _LEAST_IDF)
