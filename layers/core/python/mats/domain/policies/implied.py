"""Find what a request implies without naming it, such as the file that is to be written. docs/decisions/0049."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from mats.domain.capability.capability import Id
from mats.domain.policies.policy import Ask, Order, Policy, Pool
from mats.domain.search.lookups import LexicalQuery, Lookups, Vector, search_both
from mats.domain.search.shortlist import Ranked, take_in_turn
from mats.domain.text.words import query_terms, words


class Step(NamedTuple):
    """What a pattern implies, in words that are searched."""

    pattern: re.Pattern[str]
    text: str


_WAY, _PLACE = r"\b(?i:routes?|directions|near|nearby|within \d+ ?k?m|trip|drive)\b", r"(?<=[a-z,] )[A-Z]\w+"
STEPS = (
    Step(
        re.compile(
            r"\b(?:sav|writ|stor|put|export|generat|creat|draft|mak|produc|output|record)\w*\b[^.?!\n]{0,160}?\s"
            r"(?:to|at|in|into|under|as)\s+[`'\"]?(?:(?:~|\.{1,2})?/)?(?:[\w.-]+/)*[\w-]+"
            r"\.(?:md|txt|csv|json|html?|ya?ml|xml|log|tex|rst|py|js|ts|sql)\b",
            re.IGNORECASE,
        ),
        "write a file",
    ),
    Step(
        re.compile(r"\b(?:tomorrow|tonight|next (?:week|weekend|month|year|\w+day)|in the next)\b", re.IGNORECASE),
        "get the current date and time",
    ),
    Step(
        re.compile(rf"\A(?=.*?{_WAY})(?=.*?{_PLACE})", re.DOTALL),
        "coordinates of an address or place",
    ),
    Step(
        re.compile(r"\b(?:calculat\w+|in total|work out how|estimate (?:its|the|their|what)\b)", re.IGNORECASE),
        "calculate an arithmetic expression",
    ),
)
"""Patterns of what people ask for; each text is searched as a request of its own."""
_LEAST_WORDS = 12  # A shorter request asks for one thing
_DEPTH, _MOST, _NEAR = 15, 2, 0.5  # Hits of each side for a step; how many serve it, and their least cosine


@dataclass(frozen=True)
class ImpliedStep(Policy):
    """Searches for the steps, too, and weaves what serves them in behind the first result."""

    encode: Callable[[str], Vector] | None = None  # Without it, steps are found by their words
    name: ClassVar = "implied-step"
    reads: ClassVar = ("look",)

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Sequence[Id]:
        if len(words(ask.text)) < _LEAST_WORDS:
            return ()
        steps = [step for step in STEPS if step.pattern.search(ask.text)]
        return take_in_turn([self._search(step, ask, index) for step in steps])

    def _search(self, step: Step, ask: Ask, index: Lookups) -> Sequence[Id]:
        words, vector = LexicalQuery(terms=query_terms(step.text)), self.encode(step.text) if self.encode else None
        ids, cosine = search_both(index, words, vector, ask.admitted, depth=_DEPTH)
        return [id for id in ids if not self.encode or cosine.get(id, 0.0) >= _NEAR][:_MOST]

    def nominate(self, order: Order, evidence: Sequence[Id] | None) -> Order:
        return order.led_by((*order.ids[: order.k - len(evidence)], *evidence)) if evidence else order

    def choose(self, pool: Pool, evidence: Sequence[Id] | None) -> Pool:
        for place, id in enumerate(evidence or (), start=1):
            pool = pool.mark([id], step=place)
        return pool

    def arrange(self, ranked: Ranked) -> Ranked:
        behind = [each for each in ranked.results[1:] if each.candidate.marks.step]
        if not behind:
            return ranked
        steps = sorted(behind, key=lambda each: each.candidate.marks.step)
        rest = [each for each in ranked.results if each not in behind]
        woven = [each for pair in zip(rest, steps, strict=False) for each in pair]
        return ranked.with_results([*woven, *rest[len(steps) :], *steps[len(rest) :]])
