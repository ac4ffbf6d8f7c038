"""Regex: pattern matching without any model."""

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from mats.domain.capability import Id
from mats.domain.registration import Registration
from mats.domain.text import LUCENE_STOP_WORDS
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import SystemAnswer

_WORD = re.compile(r"\w+")


class Regex:
    r"""Every word of a query is a pattern, matched against name and description as a whole word, case ignored.

    What the paper says: "pattern-match, no LLM" and "regex hits first, then alphabetic"; its lists reach Match@5, but
    not Recall@15. What it leaves open, and how it is read here: a word is `\w+`, and Lucene's English stop words are
    left out, as plain BM25 leaves them out; a hit is whatever matches one word at least; hits stand by how many
    different words of the query match, which is the only count a set of patterns gives; equal ones stand
    alphabetically, by id. What matches nothing is not listed.

    A whole word `\w+` matches `\bword\b` exactly where the text has it between its own word borders, so an index of
    words finds what the patterns find. `get_weather` is one word: an underscore is no border.
    """

    def __init__(self, registrations: Sequence[Registration], k: int) -> None:
        """Search these for at most k hits."""
        ordered = sorted(registrations, key=lambda registration: registration.id)
        self._k, self._ids = k, [registration.id for registration in ordered]
        rows: dict[str, list[int]] = defaultdict(list)
        for row, registration in enumerate(ordered):
            for word in words(f"{registration.name} {registration.description}"):
                rows[word].append(row)
        self._rows = {word: np.array(holders) for word, holders in rows.items()}

    def __call__(self, query: JudgedQuery) -> SystemAnswer:
        """At most k hits."""
        found = self.hits(query.text)[: self._k]
        return SystemAnswer(ranked=found, retrieved=found)

    def hits(self, text: str) -> list[Id]:
        """Everything any word of the text matches."""
        matched = np.zeros(len(self._ids), np.int64)
        for word in (words(text) - LUCENE_STOP_WORDS) & self._rows.keys():
            matched[self._rows[word]] += 1
        order = np.argsort(-matched, kind="stable")[: np.count_nonzero(matched)]
        return [self._ids[row] for row in order]


def words(text: str) -> set[str]:
    """The different words of a text, case ignored."""
    return set(_WORD.findall(text.lower()))
