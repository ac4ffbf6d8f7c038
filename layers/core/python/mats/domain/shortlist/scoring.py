"""How measurements become a score: the weights of the signals, the scale of retrieval, and the rule for trust."""

from collections.abc import Iterable
from dataclasses import dataclass

from mats.domain.learning.reliability import NO_COUNTS, Counts, Reliability, posterior
from mats.domain.ranking.ranking import Scale, Weights

_UNRATED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustRule:
    """How operator-assigned trust, 0 to 100, becomes the `quality` signal. docs/decisions/0036.

    Outcomes that callers report change what counts, never the trust itself: docs/decisions/0050.

    Args:
        prior: Trust of an unrated candidate in an answer where another one is rated or reported on, 0 to 100. None:
            its `quality` drops out.
        proportional: Whether `quality` is reliability x relevance, so that it orders what is relevant, or reliability
            alone.
    """

    prior: int | None
    proportional: bool

    @property
    def unrated_trust(self) -> int:
        """The trust of an unrated capability beside its near-duplicates: the prior, or 50 without one."""
        return _UNRATED if self.prior is None else self.prior

    def prior_among(self, assigned: Iterable[int | None], *, reported: bool = False) -> int | None:
        """The trust of the unrated in an answer with these; None if nobody there is rated or `reported` on."""
        return self.prior if reported or any(trust is not None for trust in assigned) else None

    def quality(
        self, trust: int | None, prior: int | None, relevance: float, counts: Counts = NO_COUNTS
    ) -> float | None:
        """The signal in [0, 1]; None if there is neither trust, nor a prior, nor an outcome."""
        if trust is None and prior is None and not counts:
            return None
        mean = self.reliability(prior if trust is None else trust, counts).mean
        return mean * (relevance if self.proportional else 1)

    def reliability(self, trust: int | None, counts: Counts) -> Reliability:
        """The posterior of this trust after these outcomes; the unrated start from the prior, or 50 without one."""
        return posterior((self.unrated_trust if trust is None else trust) / 100, counts)


PAPER_TRUST = TrustRule(prior=None, proportional=False)
"""Section 3.3 of the paper: trust is added, and drops out where it is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """One configuration for all kinds, never tuned for one of them or for a data set."""

    scale: Scale
    weights: Weights
    trust: TrustRule
