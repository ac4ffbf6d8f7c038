"""Blend the signals of each candidate into a score (section 3.3 of the paper)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.profile.assignment import UNRATED_TRUST
from mats.domain.search.candidate import Candidate, Result
from mats.domain.search.scale import Scale
from mats.domain.search.signals import Signal, Weights, fallback_weights, intent, shares, weighted_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRule:
    """How operator-assigned trust, 0 to 100, becomes the `quality` signal. docs/decisions/0036."""

    prior: int | None
    """Trust of an unrated candidate beside one that is rated, 0 to 100; None: `quality` drops out."""
    proportional: bool
    """Whether `quality` is trust x relevance, so that it orders what is relevant, or trust alone."""

    @property
    def unrated_trust(self) -> int:
        """The trust of an unrated capability beside its near-duplicates: the prior, or 50 without one."""
        return UNRATED_TRUST if self.prior is None else self.prior

    def quality(self, share: float | None, relevance: float) -> float | None:
        """The signal of this share of full trust, both in [0, 1]; None without trust."""
        return None if share is None else share * (relevance if self.proportional else 1)


TRUST = TrustRule(prior=UNRATED_TRUST, proportional=True)
"""Trust counts in proportion to relevance, and the unrated have the middle beside the rated: docs/decisions/0036."""
PAPER_TRUST = TrustRule(prior=None, proportional=False)
"""Section 3.3 of the paper: trust is added, and drops out where it is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """One configuration for all kinds, never tuned for one of them or for a data set."""

    scale: Scale
    weights: Weights
    trust: TrustRule

    def without_reranker(self) -> "Scoring":
        """The same where no candidate has a score of the reranker."""
        return replace(self, weights=fallback_weights(self.weights))


@dataclass(frozen=True, slots=True)
class Opinion:
    """The reranker's scores in [0, 1] by id, and the capability type that it inferred; empty if it failed."""

    scores: Mapping[Id, float] = field(default_factory=dict)
    intent: str | None = None


def blend(candidates: Sequence[Candidate], opinion: Opinion, scoring: Scoring) -> list[Result]:
    """The candidates with their scores, best first, independent of the order given.

    Without an opinion, `retrieval` takes the weight of `llm`. Each candidate has an id of its own.
    """
    scoring = scoring if opinion.scores else scoring.without_reranker()
    is_rated = any(candidate.profile.trust is not None for candidate in candidates)
    prior = scoring.trust.prior if is_rated else None
    results = [_measure(candidate, opinion, scoring) for candidate in candidates]
    return best_results_first(
        [
            _with_quality(
                each, scoring.trust.quality(_share(each.candidate.profile.trust, prior), each.relevance), scoring
            )
            for each in results
        ]
    )


def _share(trust: int | None, prior: int | None) -> float | None:
    known = prior if trust is None else trust
    return None if known is None else known / 100


def _measure(candidate: Candidate, opinion: Opinion, scoring: Scoring) -> Result:
    """A candidate with its signals except `quality`."""
    profile, scale, llm = candidate.profile, scoring.scale, opinion.scores.get(candidate.id)
    bm25, cosine, pairs, least = candidate.bm25, candidate.cosine, candidate.pairs, candidate.least
    relevance = retrieval = _at_least(least, scale.retrieval(bm25, cosine, pairs, candidate.shift))
    if candidate.gain:
        retrieval = _at_least(least, scale.retrieval(bm25, cosine, pairs, candidate.shift + candidate.gain))
    measured = {
        Signal.LLM: llm,
        Signal.RETRIEVAL: retrieval,
        Signal.BM25: None if bm25 is None else scale.bm25(bm25),
        Signal.INTENT: None
        if opinion.intent is None
        else intent(opinion.intent, kind=profile.kind, type_tags=profile.type_tags),
    }
    signals = {signal: value for signal, value in measured.items() if value is not None and signal in scoring.weights}
    weighed = shares(signals, scoring.weights)
    return Result(
        candidate=candidate,
        score=weighted_mean(signals, weighed),
        signals=signals,
        weights=weighed,
        relevance=llm if llm is not None else relevance or 0.0,
        suspicious=profile.suspicious,
        moved=candidate.shift > 0,
    )


def _at_least(least: float, value: float | None) -> float | None:
    return None if value is None else least + (1 - least) * value


def _with_quality(result: Result, quality: float | None, scoring: Scoring) -> Result:
    """The result with this `quality` in its score; unchanged without one."""
    if quality is None or Signal.QUALITY not in scoring.weights:
        return result
    measured = {**result.signals, Signal.QUALITY: quality}
    signals = {signal: measured[signal] for signal in Signal if signal in measured}
    weighed = shares(signals, scoring.weights)
    return replace(result, score=weighted_mean(signals, weighed), signals=signals, weights=weighed)


def best_results_first(results: Sequence[Result]) -> list[Result]:
    """Highest score first; ties: active before deprecated, then by id.

    Candidates that a truncated reply of the reranker did not score follow those that it did: scores with and without
    its signal cannot be compared.
    """
    reranked = any(Signal.LLM in result.signals for result in results)

    def key(result: Result) -> tuple[bool, float, bool, Id]:
        deprecated = result.candidate.profile.lifecycle is Lifecycle.DEPRECATED
        return reranked and Signal.LLM not in result.signals, -result.score, deprecated, result.id

    return sorted(results, key=key)


def best_relevance(ranked: Sequence[Result]) -> float | None:
    """The highest relevance, of the reranked ones if there are any; None for an empty list."""
    reranked = [result for result in ranked if Signal.LLM in result.signals]
    return max((result.relevance for result in reranked or ranked), default=None)
