"""Fit the constants that make raw scores absolute: which of a grid puts gold first often, over all sets alike.

The grid is flat near its top, so the plainest of the good ones is taken: of all within half a point of the best
Match@1, raw cosines before stretched ones, then a lexical share near one half, then the higher Match@1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from evaluation.datasets import JudgedQuery
from evaluation.metrics import Values
from mats.domain.query import Query
from mats.domain.ranking import PAPER_WEIGHTS, Scale, Signal, blend, standing_in
from mats.usecases.discover import Discover

C = (10.0, 15.0, 20.0, 30.0, 45.0)
LEXICAL_SHARES = (0.4, 0.5, 0.55, 0.6, 0.7)
COSINES = ((0.0, 1.0), (0.1, 0.9), (0.2, 0.8))
_AS_GOOD = 0.005
_WEIGHTS = standing_in(PAPER_WEIGHTS)


@dataclass(frozen=True, slots=True)
class Measured:
    """The candidates of one query: which are gold, and their raw scores."""

    gold: Values
    bm25: Values
    cosine: Values


def measured(discover: Discover, queries: Sequence[JudgedQuery]) -> list[Measured]:
    """The candidates of every query, without those of queries that find nothing."""
    found = []
    for query in queries:
        candidates = [result.candidate for result in discover(Query(query=query.text[:2_000])).ranked]
        if candidates:
            found.append(
                Measured(
                    np.array([c.profile.id in query.relevant for c in candidates], dtype=np.float64),
                    np.array([c.bm25 or 0.0 for c in candidates]),
                    np.array([c.cosine or 0.0 for c in candidates]),
                )
            )
    return found


def fit(sets: Sequence[Sequence[Measured]]) -> tuple[Scale, list[dict[str, Any]]]:
    """The plainest of the scales with a good Match@1, the mean of all sets, and the whole grid."""
    grid = [
        (Scale(c=c, lo=lo, hi=hi, lexical_share=share)) for c, share, (lo, hi) in product(C, LEXICAL_SHARES, COSINES)
    ]
    values = [float(np.mean([np.mean([_hit(scale, one) for one in each]) for each in sets])) for scale in grid]
    table = [
        {"c": s.c, "lexical_share": s.lexical_share, "lo": s.lo, "hi": s.hi, "match@1": round(value, 4)}
        for s, value in zip(grid, values, strict=True)
    ]
    good = [(scale, value) for scale, value in zip(grid, values, strict=True) if value >= max(values) - _AS_GOOD]
    plainest, _ = min(good, key=lambda pair: (pair[0].lo, abs(pair[0].lexical_share - 0.5), -pair[1]))
    return plainest, table


def _hit(scale: Scale, one: Measured) -> float:
    """Whether the best candidate by the answer's own score is gold."""
    scores = [_score(scale, b, c) for b, c in zip(one.bm25, one.cosine, strict=True)]
    return float(one.gold[int(np.argmax(scores))])


def _score(scale: Scale, bm25: float, cosine: float) -> float:
    retrieval = scale.retrieval(bm25, cosine) or 0.0
    return blend({Signal.RETRIEVAL: retrieval, Signal.BM25: scale.bm25(bm25)}, _WEIGHTS)
