"""The signals of a score, their weights, and the weighted mean (section 3.3 of the paper)."""

from collections.abc import Collection, Mapping
from enum import StrEnum

from mats.domain.capability.capability import Kind


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

    Without type tags, the kind decides if a kind was inferred, else a prior counts: docs/decisions/0036.
    """
    if inferred in type_tags:
        return 1.0
    if inferred == kind:
        return 0.5
    return 0.0 if type_tags or inferred in tuple(Kind) else _UNTAGGED
