"""Baselines without a model: regex, and plain BM25, with which every system is compared."""

import re
import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import Stemmer
from rank_bm25 import BM25Okapi

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.text.text import LUCENE_STOP_WORDS, split_identifier
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.base import SystemAnswer

K1, B = 1.2, 0.75
_WORD = re.compile(r"\w+")


class PlainBm25:
    """`rank_bm25.BM25Okapi` over lower-cased words of two letters or more, Snowball-stemmed.

    Lucene's English stop words are left out. Of the usual definitions of plain BM25 this is a strong one: words of one
    letter cost 2 points of Match@1 on the tools. With `splits_names`, a name counts as written and as its words:
    `get_weather` is also `get weather`.
    """

    def __init__(self, registrations: Sequence[Registration], *, splits_names: bool = False) -> None:
        self._stem = Stemmer.Stemmer("english").stemWords
        self._ids = np.array([registration.id for registration in registrations], dtype=object)
        names = [f"{r.name} {split_identifier(r.name)}" if splits_names else r.name for r in registrations]
        texts = (f"{name} {r.description}" for name, r in zip(names, registrations, strict=True))
        self._index = BM25Okapi([self._terms(text) for text in texts], k1=K1, b=B)

    def search(self, text: str, k: int) -> list[Id]:
        """At most k ids by score, equal scores by id; without those that score 0."""
        scores = self._index.get_scores(self._terms(text))
        order = np.lexsort((self._ids.astype(str), -scores))[:k]
        return [Id(self._ids[row]) for row in order if scores[row] > 0]

    def _terms(self, text: str) -> list[str]:
        words: list[str] = self._stem(
            [word for word in re.findall(r"\b\w\w+\b", text.lower()) if word not in LUCENE_STOP_WORDS]
        )
        return words


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
