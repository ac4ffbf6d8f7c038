"""The verdict: whether the registry has a capability for the request."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

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
        docs/decisions/0017.
        """
        if reranked or not searched:
            return self.reranked if reranked else self.lexical
        return replace(self.hybrid, weak=self.hybrid.weak * max(_LEAST_SHARE, searched**2))
