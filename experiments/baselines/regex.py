"""Regex: every word of a query is a pattern."""

import re
import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.text.words import LUCENE_STOP_WORDS
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import SystemAnswer

_WORD = re.compile(r"\w+")


class Regex:
    r"""Every word of a query is a pattern, matched against name and description as a whole word, case ignored.

    The paper says: "pattern-match, no LLM" and "regex hits first, then alphabetic"; its lists reach Match@5, but not
    Recall@15. Ours: a word is `\w+` without Lucene's English stop words, as for plain BM25; a hit matches at least one
    word; hits are ordered by the number of different query words they match, the only count that a set of patterns
    gives, then by id.

    `\bword\b` matches exactly the whole words `\w+` of a text, so an index of words finds what the patterns find.
    `get_weather` is one word: an underscore is no word boundary.
    """

    def __init__(self, registrations: Sequence[Registration], k: int) -> None:
        ordered = sorted(registrations, key=lambda registration: registration.id)
        self._k, self._ids = k, [registration.id for registration in ordered]
        rows: dict[str, list[int]] = defaultdict(list)
        for row, registration in enumerate(ordered):
            for word in words(f"{registration.name} {registration.description}"):
                rows[word].append(row)
        self._rows = {word: np.array(holders) for word, holders in rows.items()}

    def __call__(self, query: JudgedQuery) -> SystemAnswer:
        began = time.perf_counter()
        ids = self.hits(query.text)[: self._k]
        return SystemAnswer(ranked=ids, retrieved=ids, took_ms={"total": 1_000 * (time.perf_counter() - began)})

    def hits(self, text: str) -> list[Id]:
        """All hits, best first."""
        matched = np.zeros(len(self._ids), np.int64)
        for word in (words(text) - LUCENE_STOP_WORDS) & self._rows.keys():
            matched[self._rows[word]] += 1
        order = np.argsort(-matched, kind="stable")[: np.count_nonzero(matched)]
        return [self._ids[row] for row in order]


def words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
