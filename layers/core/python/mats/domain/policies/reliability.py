"""Count what callers reported into the trust of a capability: docs/decisions/0050."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.capability.capability import Id
from mats.domain.learning.reliability import Tallies, count, limit_moves, posterior_mean
from mats.domain.policies.policy import Ask, Policy
from mats.domain.search.blend import Scoring, best_results_first, with_quality
from mats.domain.search.candidate import Candidate
from mats.domain.search.shortlist import Ranked


@dataclass(frozen=True)
class Reliability(Policy):
    """Reported outcomes move a candidate by at most one place for each caller behind them.

    Not higher, if these callers' votes have lifted it: that is one bound for both.
    """

    name: ClassVar = "reliability"
    reads: ClassVar = ("shift",)
    tallies: Callable[[Collection[Id]], Tallies]
    now: Callable[[], str]

    def shift(self, candidates: Sequence[Candidate], evidence: None, ask: Ask, scoring: Scoring) -> Sequence[Candidate]:
        tallies = self.tallies([each.id for each in candidates]) if candidates else {}
        if not tallies:
            return candidates
        now = self.now()
        return [
            replace(each, counts=count(tallies.get(each.id, ()), asking=ask.caller, now=now)) for each in candidates
        ]

    def arrange(self, ranked: Ranked) -> Ranked:
        counts = {
            each.id: replace(each.candidate.counts, rise=0.0) if _is_lifted(each.candidate) else each.candidate.counts
            for each in ranked.results
        }
        if not any(counts.values()):
            return ranked
        scoring, trust = ranked.scoring, ranked.scoring.trust
        rated = any(each.candidate.profile.trust is not None for each in ranked.results)
        scored = []
        for each in ranked.results:
            own, reported = each.candidate.profile.trust, counts[each.id]
            known = own is not None or trust.prior is not None or reported
            share = posterior_mean((trust.unrated_trust if own is None else own) / 100, reported) if known else None
            # where nobody is rated, equal reliability must leave the order as it is
            scored.append(with_quality(each, trust.quality(share, each.relevance if rated else each.score), scoring))
        before = [each.id for each in ranked.results]
        after = limit_moves(before, [each.id for each in best_results_first(scored)], counts)
        was, by_id = {id: place for place, id in enumerate(before)}, {each.id: each for each in scored}
        return ranked.with_results(
            replace(by_id[id], moved=by_id[id].moved or place < was[id]) for place, id in enumerate(after)
        )


def _is_lifted(candidate: Candidate) -> bool:
    """True if votes have lifted a candidate, or made it one."""
    return candidate.alone == -math.inf or 0 < candidate.rise < math.inf
