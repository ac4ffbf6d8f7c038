"""Fit the constants that map raw scores to [0, 1]: a grid search for the best Match@1, the mean over all sets.

The grid is flat near its maximum, so the simplest good scale is chosen: of all within half a point of the best
Match@1, raw cosines before stretched ones, then a lexical share near one half, then the higher Match@1.

A second grid search fits the spread, so that `retrieval` can replace the reranker beside trust. Trust is random there:
it carries no information on relevance and can only reduce Match@1. The spread that loses least is chosen.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mats.domain.search.query import Query
from mats.domain.search.scale import Scale
from mats.domain.search.signals import PAPER_WEIGHTS, Signal, fallback_weights, shares, weighted_mean
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.measures import SEED, Values
from mats.usecases.discover import Discover

C = (10.0, 15.0, 20.0, 30.0, 45.0)
LEXICAL_SHARES = (0.4, 0.5, 0.55, 0.6, 0.7)
COSINES = ((0.0, 1.0), (0.1, 0.9), (0.2, 0.8))
EVENS, SPREADS = (0.3, 0.35, 0.4, 0.45, 0.5), (0.03, 0.05, 0.08, 0.12)
TRUSTED = {
    "none": (0.0, 0.0, 1.0),
    "some, highly": (0.15, 0.7, 0.95),
    "some, any": (0.15, 0.0, 1.0),
    "all, any": (1.0, 0.0, 1.0),
}
"""Random trust: the share of capabilities that have it, and its range."""
_TOLERANCE = 0.005  # Of Match@1: a simpler scale may lose that much to the best one
_WEIGHTS = fallback_weights(PAPER_WEIGHTS)


@dataclass(frozen=True, slots=True)
class CandidateScores:
    """Raw scores of one query's candidates, and which of them are gold (1 or 0)."""

    gold: Values
    bm25: Values
    cosine: Values
    pairs: NDArray[np.int_]


def candidate_scores(discover: Discover, queries: Sequence[JudgedQuery]) -> list[CandidateScores]:
    """The candidates of every query that has any."""
    scores = []
    for query in queries:
        candidates = [result.candidate for result in discover.answer(Query(query=query.text[:2_000])).ranked]
        if candidates:
            scores.append(
                CandidateScores(
                    np.array([c.profile.id in query.relevant for c in candidates], dtype=np.float64),
                    np.array([c.bm25 or 0.0 for c in candidates]),
                    np.array([c.cosine or 0.0 for c in candidates]),
                    np.array([c.pairs for c in candidates]),
                )
            )
    return scores


def fit(sets: Sequence[Sequence[CandidateScores]]) -> tuple[Scale, list[dict[str, Any]]]:
    """The simplest scale with a good Match@1, and the whole grid."""
    grid = [Scale(c=c, lo=lo, hi=hi, lexical_share=share) for c, share, (lo, hi) in product(C, LEXICAL_SHARES, COSINES)]
    values = [_match_at_1(scale, sets, TRUSTED["none"]) for scale in grid]
    table = [
        {"c": s.c, "lexical_share": s.lexical_share, "lo": s.lo, "hi": s.hi, "match@1": round(value, 4)}
        for s, value in zip(grid, values, strict=True)
    ]
    good = [pair for pair in zip(grid, values, strict=True) if pair[1] >= max(values) - _TOLERANCE]
    simplest, _ = min(good, key=lambda pair: (pair[0].lo, abs(pair[0].lexical_share - 0.5), -pair[1]))
    return simplest, table


def fit_spread(sets: Sequence[Sequence[CandidateScores]], scale: Scale) -> tuple[Scale, list[dict[str, Any]]]:
    """The scale with the spread that loses least of Match@1 under random trust, and the whole grid."""
    table = []
    for even, spread in product(EVENS, SPREADS):
        tried = replace(scale, even=even, spread=spread)
        hits = {name: _match_at_1(tried, sets, trusted) for name, trusted in TRUSTED.items()}
        table.append({"even": even, "spread": spread, **{name: round(rate, 4) for name, rate in hits.items()}})
    best = max(table, key=lambda row: sum(row[name] for name in TRUSTED))
    return replace(scale, even=best["even"], spread=best["spread"]), table


def _match_at_1(scale: Scale, sets: Sequence[Sequence[CandidateScores]], trusted: tuple[float, float, float]) -> float:
    share, low, high = trusted
    chance = np.random.default_rng(SEED)

    def is_hit(one: CandidateScores) -> float:
        count = len(one.gold)
        quality = np.where(chance.random(count) < share, chance.uniform(low, high, count), np.nan)  # NaN: no trust
        measures = zip(one.bm25, one.cosine, one.pairs, quality, strict=True)
        scores = [_score(scale, bm25, cosine, int(pairs), trust) for bm25, cosine, pairs, trust in measures]
        return float(one.gold[int(np.argmax(scores))])

    return float(np.mean([np.mean([is_hit(one) for one in each]) for each in sets]))


def _score(scale: Scale, bm25: float, cosine: float, pairs: int, quality: float) -> float:
    signals = {Signal.RETRIEVAL: scale.retrieval(bm25, cosine, pairs) or 0.0, Signal.BM25: scale.bm25(bm25)}
    present = signals if np.isnan(quality) else {**signals, Signal.QUALITY: quality}
    return weighted_mean(present, shares(present, _WEIGHTS))
