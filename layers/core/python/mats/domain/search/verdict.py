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


WEAK_UNREAD = 0.058
"""Where `weak` begins at least for what is no words: 97 % of random letters are below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictThresholds:
    """The thresholds of each kind of relevance: the reranker's scores, both sides of retrieval, words alone."""

    reranked: Thresholds
    hybrid: Thresholds
    lexical: Thresholds

    def of(self, *, reranked: bool, compared: bool, understood: bool) -> Thresholds:
        """The thresholds of a reranked answer, else of one with cosines (`compared`), else of one by words alone.

        What is not `understood`, because it has no word of what was searched and its words fall apart, may be a rare
        word or random letters: it has to be nearer.
        """
        if reranked:
            return self.reranked
        usual = self.hybrid if compared else self.lexical
        return usual if understood else replace(usual, weak=max(usual.weak, WEAK_UNREAD))
