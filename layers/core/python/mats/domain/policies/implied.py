"""Find what a request implies without naming it: a file that is to be written. docs/decisions/0049."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mats.domain.capability.capability import Id
from mats.domain.policies.policy import Ask, Order, Policy, Pool
from mats.domain.search.lookups import Lookups, Vector
from mats.domain.search.scale import LEXICAL_SHARE, best_first, fuse
from mats.domain.search.shortlist import Ranked
from mats.domain.text.words import query_terms

_IS_WRITTEN = re.compile(
    r"\b(?:sav|writ|stor|put|export|generat|creat|draft|mak|produc|output|record)\w*\b[^.?!\n]{0,160}?\s(?:to|at|in|into|under|as)"
    r"\s+[`'\"]?(?:(?:~|\.{1,2})?/)?(?:[\w.-]+/)*[\w-]+\.(?:md|txt|csv|json|html?|ya?ml|xml|log|tex|rst|py|js|ts|sql)\b",
    re.IGNORECASE,
)
"""Text goes into a file of text: endings of one benchmark's tasks, so that other requests hardly ever match."""
STEP = "write a file"
_DEPTH, _MOST = 15, 5  # Hits of each side for the step, and candidates that serve it


@dataclass(frozen=True)
class ImpliedStep(Policy):
    """Searches for the step, too, and weaves what serves it in behind the first result."""

    name: ClassVar = "implied-step"
    reads: ClassVar = ("look",)

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Sequence[Id]:
        if not _IS_WRITTEN.search(ask.text):
            return ()
        bm25 = index.lexical(query_terms(STEP), ask.admitted, depth=_DEPTH)
        return best_first(fuse(bm25, {}, lexical_share=LEXICAL_SHARE))[:_MOST]

    def nominate(self, order: Order, evidence: Sequence[Id] | None) -> Order:
        ahead = order.ids[: order.k - _MOST]
        return order.led_by((*ahead, *evidence)) if evidence else order

    def choose(self, pool: Pool, evidence: Sequence[Id] | None) -> Pool:
        return pool.mark(evidence or (), step=True)

    def arrange(self, ranked: Ranked) -> Ranked:
        steps = [each for each in ranked.results if each.candidate.marks.step]
        rest = [each for each in ranked.results if not each.candidate.marks.step]
        woven = [each for pair in zip(rest, steps, strict=False) for each in pair]
        return ranked.with_results([*woven, *rest[len(steps) :], *steps[len(rest) :]]) if steps else ranked
