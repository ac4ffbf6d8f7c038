"""From words to a ranked shortlist: BM25, fusion, the absolute scale, the signals, the blend, the verdict.

BM25 is over weighted fields (Robertson & Zaragoza 2009), with the idf of SQLite's FTS5: docs/decisions/0052.

Fusion chooses *which* k candidates are ranked; it compares them with each other, so its scores mean nothing outside
their query. The retrieval scale rates *how good* a candidate is on its own, so it can be compared across queries.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple

from mats.domain.capability.capability import Id, Kind
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


Scores = Mapping[Id, float]


def best_first(scores: Scores) -> list[Id]:
    """Highest score first; equal scores by id, so that a run can be repeated."""
    return sorted(scores, key=lambda id: (-scores[id], id))


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


class Signal(StrEnum):
    """A signal of a shortlist's score; `retrieval` takes the weight of `llm` when no candidate has that."""

    LLM = "llm"
    RETRIEVAL = "retrieval"
    BM25 = "bm25"
    QUALITY = "quality"
    INTENT = "intent"


Signals = Mapping[Signal, float]
Weights = Mapping[Signal, float]

PAPER_WEIGHTS: Weights = {Signal.LLM: 0.50, Signal.BM25: 0.05, Signal.QUALITY: 0.30, Signal.INTENT: 0.15}
"""Section 3.3 of the paper; one configuration for all kinds, never tuned."""

WITH_RETRIEVAL: Weights = {Signal.LLM: 0.50, Signal.RETRIEVAL: 0.20, Signal.QUALITY: 0.30, Signal.INTENT: 0.15}
"""Keeps `retrieval` beside the reranker's score, for models that misjudge often: docs/decisions/0039."""
WEIGHT_SETS: Mapping[str, Weights] = {"paper": PAPER_WEIGHTS, "with-retrieval": WITH_RETRIEVAL}


def fallback_weights(weights: Weights) -> Weights:
    """The weights when the whole LLM signal is missing: its share goes to `retrieval`.

    If it were dropped, trust would outrank relevance.
    """
    moved: dict[Signal, float] = {}
    for signal, weight in weights.items():
        target = Signal.RETRIEVAL if signal is Signal.LLM else signal
        moved[target] = moved.get(target, 0.0) + weight
    return moved


def shares(signals: Signals, weights: Weights) -> dict[Signal, float]:
    """The weight of each signal present, summing to 1; empty if none has weight. Absent is not zero: it drops out."""
    present = {signal: weight for signal, weight in weights.items() if signal in signals and weight > 0}
    total = sum(present.values())
    return {signal: weight / total for signal, weight in present.items()}


def weighted_mean(signals: Signals, weighed: Weights) -> float:
    """The mean by `shares`, between the weakest and the strongest of the signals; 0.0 if none has weight."""
    if not weighed:
        return 0.0
    values = [signals[signal] for signal in weighed]
    mean = sum(share * value for share, value in zip(weighed.values(), values, strict=True))
    return min(max(values), max(min(values), mean))  # rounding cannot leave the range


_UNTAGGED = 0.25  # `intent` of a candidate without type tags where a type was inferred


def intent(inferred: str, *, kind: Kind | None, type_tags: Collection[str]) -> float:
    """1 if the inferred capability type is among the tags, one half if only the kind matches, else 0.

    Without type tags, the kind decides if a kind was inferred, else a prior counts: docs/decisions/0077.
    """
    if inferred in type_tags:
        return 1.0
    if inferred == kind:
        return 0.5
    return 0.0 if type_tags or inferred in tuple(Kind) else _UNTAGGED


MinRelevance = float | Literal["weak"]  # The least relevance of a result in [0, 1], or that of a weak match


class Verdict(StrEnum):
    """The answer to whether the registry has a capability for the query."""

    MATCH = "match"
    WEAK = "weak"
    NONE = "none"


_LEAST_SHARE = 1 / 3  # Of the threshold of a weak match, in the smallest registries


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From which relevance on the best candidate counts as a match, or at least as a weak one; both in [0, 1]."""

    match: float
    weak: float

    def verdict(self, best: float | None) -> Verdict:
        """The verdict on a shortlist whose most relevant candidate has this relevance; none for an empty one."""
        if best is None or best < self.weak:
            return Verdict.NONE
        return Verdict.MATCH if best >= self.match else Verdict.WEAK


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictThresholds:
    """The thresholds of each kind of relevance: the reranker's scores, both sides of retrieval, words alone."""

    reranked: Thresholds
    hybrid: Thresholds
    lexical: Thresholds

    def of(self, *, reranked: bool, searched: float) -> Thresholds:
        """The thresholds of a reranked answer, else of one with neural hits, else of one without (`searched` is 0).

        `searched` is the size of the registry as a part of one that is not small: in a small one less is by chance.
        docs/decisions/0080.
        """
        if reranked or not searched:
            return self.reranked if reranked else self.lexical
        return replace(self.hybrid, weak=self.hybrid.weak * max(_LEAST_SHARE, searched**2))
