"""Regex: pattern matching without any model."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluation.answers import Answer
from evaluation.datasets import JudgedQuery
from mats.domain.capability import Id
from mats.domain.registration import Registration

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Regex:
    r"""Every word of a query is a pattern, matched against name and description as a whole word, case ignored.

    What the paper says: "pattern-match, no LLM" and "regex hits first, then alphabetic"; its lists reach Match@5, but
    not Recall@15. What it leaves open, and how it is read here: a word is `\w+`, and no word is left out; a hit is
    whatever matches one word at least; hits stand by how many different words of the query match, which is the only
    count a set of patterns gives; equal ones stand alphabetically, by id. What matches nothing is not listed.

    A whole word `\w+` matches `\bword\b` exactly where the text has it between its own word borders, so an index of
    words finds what the patterns find. `get_weather` is one word: an underscore is no border.
    """

    registrations: Sequence[Registration]
    k: int
    _holders: dict[str, list[Id]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for registration in self.registrations:
            for word in words(f"{registration.name} {registration.description}"):
                self._holders[word].append(registration.id)

    def __call__(self, query: JudgedQuery) -> Answer:
        """At most k hits."""
        found = self.hits(query.text)[: self.k]
        return Answer(ranked=found, retrieved=found)

    def hits(self, text: str) -> list[Id]:
        """Everything any word of the text matches."""
        matched = Counter(id for word in words(text) for id in self._holders.get(word, ()))
        return sorted(matched, key=lambda id: (-matched[id], id))


def words(text: str) -> set[str]:
    """The different words of a text, case ignored."""
    return set(_WORD.findall(text.lower()))
