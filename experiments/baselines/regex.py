"""Regex: every word of a query is a pattern."""

import re
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.text.words import LUCENE_STOP_WORDS
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import SystemAnswer

_WORD = re.compile(r"\w+")


class Regex:
    r"""Every word of a query is a pattern, searched in names and descriptions, case ignored.

    The paper says: "pattern-match, no LLM" and "regex hits first, then alphabetic". Ours: a pattern is a word `\w+` of
    the query without Lucene's English stop words, as for plain BM25, and matches inside words, too: `weather` is found
    in `get_weather`. Hits are ordered by how many patterns match the name, then the description; the rest follows by
    name.
    """

    def __init__(self, registrations: Sequence[Registration], k: int) -> None:
        ordered = sorted(registrations, key=lambda r: (r.name.casefold(), r.id))
        self._k, self._ids = k, [registration.id for registration in ordered]
        self._names = [registration.name.lower() for registration in ordered]
        self._texts = [registration.description.lower() for registration in ordered]
        self._matches: dict[str, NDArray[np.int_]] = {}

    def __call__(self, query: JudgedQuery) -> SystemAnswer:
        began = time.perf_counter()
        ids = self.ranked(query.text)[: self._k]
        return SystemAnswer(ranked=ids, retrieved=ids, took_ms={"total": 1_000 * (time.perf_counter() - began)})

    def ranked(self, text: str) -> list[Id]:
        """All ids, hits first."""
        patterns = set(_WORD.findall(text.lower())) - LUCENE_STOP_WORDS
        score = sum((self._matches_of(pattern) for pattern in patterns), np.zeros(len(self._ids), dtype=int))
        return [self._ids[row] for row in np.argsort(-score, kind="stable")]

    def _matches_of(self, pattern: str) -> NDArray[np.int_]:
        """By row 1,000 for a match in the name, and 1 for one in the description: integers, whose sum has no order."""
        if pattern not in self._matches:
            named = np.array([pattern in name for name in self._names], dtype=int)
            self._matches[pattern] = 1_000 * named + np.array([pattern in text for text in self._texts], dtype=int)
        return self._matches[pattern]
