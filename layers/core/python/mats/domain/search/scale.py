"""Fusion, which chooses the candidates, and the absolute scale of how good a candidate is on its own.

Fusion compares candidates with each other, so its scores mean nothing outside their query; values of the scale can be
compared across queries.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mats.domain.capability.capability import Id

Scores = Mapping[Id, float]


def best_first(scores: Scores) -> list[Id]:
    """Highest score first; equal scores by id, so that a run can be repeated."""
    return sorted(scores, key=lambda id: (-scores[id], id))


LEXICAL_SHARE = 0.6  # Of the lexical side in the fusion of the two: docs/decisions/0003


def fuse(lexical: Scores, neural: Scores, *, lexical_share: float) -> dict[Id, float]:
    """Convex combination of two first-stage lists, each score in [0, 1]; absent from a list counts as 0 there.

    Lexical scores are divided by the best one; cosines are min-max scaled over the list given (Bruch, Gai & Ingber,
    "An Analysis of Fusion Functions for Hybrid Retrieval", TOIS 2023). A list that is empty leaves the other alone.
    BM25 scores are greater than 0; both lists have the same depth. `lexical_share` is in [0, 1].
    """
    top = max(lexical.values(), default=0.0)
    low, high = min(neural.values(), default=0.0), max(neural.values(), default=0.0)
    span, neural_share = high - low, 1 - lexical_share
    fused = {id: neural_share * ((cosine - low) / span if span > 0 else 1.0) for id, cosine in neural.items()}
    for id, score in lexical.items():
        fused[id] = fused.get(id, 0.0) + lexical_share * (score / top if top > 0 else 0.0)
    return fused


_PAIRS_EVEN = 3  # Number of matching pairs that count half of the maximum


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Makes raw scores absolute. Constants per (index, encoder), fitted by the evaluation: results/calibration.json."""

    c: float  # The BM25 score that is worth one half
    lo: float  # The cosine worth nothing
    hi: float  # The cosine worth everything
    lexical_share: float = 0.5  # Weight of the BM25 side in `retrieval`, in [0, 1]
    even: float = 0.4  # The mixture of both sides that is worth one half, in [0, 1]
    spread: float = 0.08
    """Distance from `even` at which a mixture is worth 73 % (above) or 27 % (below), greater than 0."""
    pairs_share: float = 0.4  # Share of the distance from a mixture to 1 that many matching pairs add, in [0, 1]

    def bm25(self, score: float) -> float:
        """A BM25 score as b / (b + c), in [0, 1)."""
        return score / (score + self.c)

    def retrieval(self, score: float | None, cosine: float | None, pairs: int = 0, shift: float = 0.0) -> float | None:
        """A logistic function of the mixture of both sides, in [0, 1], with the spread of a reranker's scores.

        Mixtures of good and bad candidates lie close together. If they replaced the reranker's scores unchanged,
        trust would outrank relevance: docs/decisions/0017. `shift` is added to the mixture.
        """
        mixture = self.mix(score, cosine, pairs)
        return None if mixture is None else 1 / (1 + math.exp((self.even - mixture - shift) / self.spread))

    def mix(self, score: float | None, cosine: float | None, pairs: int = 0) -> float | None:
        """The weighted mean of the two sides, in [0, 1]; of one if only that was measured, none if neither was.

        Matching pairs of words can only increase it, and only if the lexical side was measured: their absence is weak
        evidence, and a query of one word has none. docs/decisions/0014.
        """
        neural = None
        if cosine is not None:
            span = self.hi - self.lo
            neural = min(1.0, max(0.0, (cosine - self.lo) / span)) if span > 0 else float(cosine >= self.hi)
        if score is None:
            return neural
        lexical = self.bm25(score)
        mean = lexical if neural is None else self.lexical_share * lexical + (1 - self.lexical_share) * neural
        return mean + (1 - mean) * self.pairs_share * pairs / (pairs + _PAIRS_EVEN)
