"""Blends of the scores of rerankers of known error with the retrieval score.

No model is called: scores are derived from the labels plus noise, so that the error of a reranker can be chosen.
Without noise, it prefers the gold as often as a strong model did in 99 queries. Which wrong candidate it prefers
otherwise is an assumption, and a comparison of blends within 2 points depends on it.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.studies.context import ExperimentContext, share_json
from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.prompts.rerank_prompt import cards
from mats.domain.ranking.blend import PAPER_WEIGHTS, Scale, Signal, Weights, best_first, blend, fallback_weights
from mats.domain.ranking.query import Query
from mats.domain.shortlist.rank import Candidate
from mats.domain.text.words import words
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.measures import SEED
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.score import dataset_json
from mats.usecases.discover import Discover

QUERIES = 400
"""Of each set, a seeded sample."""
SEEDS = 5
"""Draws for each query of a reranker with random errors."""
GOLD = (60.0, 98.0)
"""The range of the score of gold: a request of several parts gets less."""
OTHERS = (5.0, 55.0)
"""The mean score of other candidates at retrieval scores of 0 and 1: from "unrelated" to "does one step of it"."""
OPINION_SD = 18.0
"""The standard deviation of the scores of other candidates around it; they stay below the gold's."""
TWINS = 0.16
"""How often a good reranker prefers a candidate without a label to the gold: a strong model did in 13 of 82 queries
with gold among the candidates, mostly for a near-duplicate of the gold."""
TWIN_LEAD = (5.0, 20.0)
"""The range of points by which it then prefers that."""
BIAS = 15.0
"""Points of a length-biased reranker per standard deviation of the length of a card."""
STEP = 5

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCandidate:
    """A candidate with what a reranker and a blend use."""

    id: Id
    signals: Mapping[Signal, float]
    """Without a reranker's: `retrieval` and `bm25`."""
    is_gold: bool
    card_bytes: int
    likeness: float
    """Share of words that its text and that of a gold candidate have in common, in [0, 1]; 0 for gold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyReranker:
    """A reranker of known error; its scores are multiples of 5 from 0 to 100.

    Args:
        sd: Standard deviation of its normal noise, in points.
        bias: Points per standard deviation of the length of a card among the candidates.
        constant: The score of every candidate, if it cannot tell them apart.
    """

    sd: float = 0.0
    bias: float = 0.0
    constant: float | None = None

    def scores(self, candidates: Sequence[JudgedCandidate], rng: np.random.Generator) -> Scores:
        """A score for each candidate, in [0, 1]."""
        if self.constant is not None:
            return np.full(len(candidates), self.constant / 100)
        points = _good_scores(candidates, rng)
        lengths = np.array([candidate.card_bytes for candidate in candidates], float)
        points += self.bias * (lengths - lengths.mean()) / (lengths.std() or 1.0)
        points += rng.normal(0.0, self.sd, len(candidates))
        return np.clip(STEP * np.round(points / STEP), 0, 100) / 100


def _good_scores(candidates: Sequence[JudgedCandidate], rng: np.random.Generator) -> Scores:
    """The scores of a reranker without error, which sometimes prefers the one most like gold and request."""
    low, high = OTHERS
    found = np.array([each.signals.get(Signal.RETRIEVAL, 0.0) for each in candidates])
    points = low + (high - low) * found + rng.normal(0.0, OPINION_SD, len(candidates))
    gold, lead, prefers_twin = rng.uniform(*GOLD), rng.uniform(*TWIN_LEAD), rng.random() < TWINS
    is_gold = np.array([each.is_gold for each in candidates])
    if is_gold.any():
        points = np.where(is_gold, gold, np.minimum(points, gold - STEP))
    if prefers_twin and is_gold.any() and not is_gold.all():
        others = (each for each in candidates if not each.is_gold)
        twin = max(others, key=lambda each: (each.likeness + each.signals.get(Signal.RETRIEVAL, 0.0), each.id))
        points[candidates.index(twin)] = min(gold + lead, GOLD[1])
    return points


RERANKERS: Mapping[str, NoisyReranker] = {
    "sd 0": NoisyReranker(),
    "sd 10": NoisyReranker(sd=10),
    "sd 20": NoisyReranker(sd=20),
    "sd 30": NoisyReranker(sd=30),
    "length-biased": NoisyReranker(sd=10, bias=BIAS),
    "constant": NoisyReranker(constant=50),
}


def beside_llm(signal: Signal, weight: float) -> Weights:
    """The weights of a reranker with one other signal."""
    return {Signal.LLM: PAPER_WEIGHTS[Signal.LLM], signal: weight}


PAPER = beside_llm(Signal.BM25, PAPER_WEIGHTS[Signal.BM25])
"""Public sets have neither trust nor type tags, so that two signals are left of four."""
BLENDS: Mapping[str, Weights] = {
    "bm25 .05": PAPER,
    "retrieval .10": beside_llm(Signal.RETRIEVAL, 0.10),
    "retrieval .20": beside_llm(Signal.RETRIEVAL, 0.20),
    "retrieval .35": beside_llm(Signal.RETRIEVAL, 0.35),
    "llm alone": {Signal.LLM: 1.0},
    "no llm": fallback_weights(PAPER),
}
"""By what stands beside a reranker of weight .50."""


def blends(context: ExperimentContext) -> dict[str, Any]:
    """Match@1 of every blend under every reranker, for each set, and its mean over the sets."""
    sets = {name: _set(context, name) for name in context.sets}
    return {
        "seeds": SEEDS,
        "gold": GOLD,
        "others": OTHERS,
        "opinion_sd": OPINION_SD,
        "twins": TWINS,
        "twin_lead": TWIN_LEAD,
        "bias": BIAS,
        "weights": {name: {str(signal): w for signal, w in weights.items()} for name, weights in BLENDS.items()},
        "sets": sets,
        "macro": {
            reranker: {name: _macro([one["judges"][reranker][name] for one in sets.values()]) for name in BLENDS}
            for reranker in RERANKERS
        },
    }


def _macro(shares: Sequence[Mapping[str, float]]) -> float:
    return round(float(np.mean([share["mean"] for share in shares])), 4)


def _set(context: ExperimentContext, name: str) -> dict[str, Any]:
    dataset, discover = context.dataset(name), context.bench(name).discover
    context.log(f"{name}: blends")
    asked = random.Random(SEED).sample(list(dataset.queries), min(QUERIES, len(dataset.queries)))
    shortlists = [candidates_of(discover, query) for query in asked]
    return {
        **dataset_json(dataset),
        "asked": len(asked),
        "candidates": share_json(np.array([float(any(each.is_gold for each in one)) for one in shortlists])),
        "judges": {name: match_at_1(reranker, shortlists) for name, reranker in RERANKERS.items()},
    }


def candidates_of(discover: Discover, query: JudgedQuery) -> list[JudgedCandidate]:
    """The candidates of the first stage, with their signals."""
    found = [result.candidate for result in discover(Query(query=query.text[:LONGEST_QUERY])).ranked]
    gold = [_words_of(each.profile) for each in found if each.profile.id in query.relevant]
    return [_candidate_of(each, gold, query, discover.scoring.scale) for each in found]


def _candidate_of(
    found: Candidate, gold: Sequence[frozenset[str]], query: JudgedQuery, scale: Scale
) -> JudgedCandidate:
    retrieval = scale.retrieval(found.bm25, found.cosine, found.pairs)
    measured = {Signal.RETRIEVAL: retrieval, Signal.BM25: None if found.bm25 is None else scale.bm25(found.bm25)}
    is_gold = found.profile.id in query.relevant
    return JudgedCandidate(
        id=found.profile.id,
        signals={signal: value for signal, value in measured.items() if value is not None},
        is_gold=is_gold,
        card_bytes=len(cards([found.profile]).encode()),
        likeness=0.0 if is_gold else _likeness(_words_of(found.profile), gold),
    )


def _words_of(profile: Profile) -> frozenset[str]:
    return frozenset(words(f"{profile.name} {profile.source.description if profile.source else ''}"))


def _likeness(text: frozenset[str], gold: Sequence[frozenset[str]]) -> float:
    """The greatest Jaccard similarity."""
    return max((len(text & other) / (len(text | other) or 1) for other in gold), default=0.0)


def match_at_1(reranker: NoisyReranker, shortlists: Sequence[Sequence[JudgedCandidate]]) -> dict[str, Any]:
    """Match@1 of every blend by the same scores, for each query the mean over the seeds; with intervals."""
    hits = {name: np.zeros(len(shortlists)) for name in BLENDS}
    seeds = 1 if reranker.constant is not None else SEEDS
    for seed in range(seeds):
        for row, candidates in enumerate(shortlists):
            if not candidates:
                continue
            gold = {candidate.id for candidate in candidates if candidate.is_gold}
            scores = reranker.scores(candidates, np.random.default_rng((SEED, seed, row)))
            for name, weights in BLENDS.items():
                hits[name][row] += first_of(candidates, scores, weights) in gold
    return {name: share_json(values / seeds) for name, values in hits.items()}


def first_of(candidates: Sequence[JudgedCandidate], scores: Scores, weights: Weights) -> Id:
    """The first of a blend, as the pipeline orders complete scores."""
    blended = {
        each.id: blend({Signal.LLM: score, **each.signals}, weights)
        for each, score in zip(candidates, scores.tolist(), strict=True)
    }
    return best_first(blended)[0]
