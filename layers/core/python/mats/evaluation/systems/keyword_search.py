"""Plain BM25, the baseline with which every system is compared."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
import Stemmer
from rank_bm25 import BM25Okapi

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.text.words import LUCENE_STOP_WORDS, split_identifier

K1, B = 1.2, 0.75


class PlainBm25:
    """`rank_bm25.BM25Okapi` over lower-cased words of two letters or more, Snowball-stemmed.

    Lucene's English stop words are left out. Of the usual definitions of plain BM25 this is a strong one: words of one
    letter cost 2 points of Match@1 on the tools.
    """

    def __init__(self, texts: Mapping[Id, str]) -> None:
        """Index a text for every id; at least one."""
        self._stem = Stemmer.Stemmer("english").stemWords
        self._ids = np.array(list(texts), dtype=object)
        self._index = BM25Okapi([self._terms(text) for text in texts.values()], k1=K1, b=B)

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


def names_and_descriptions(registrations: Sequence[Registration], *, splits_names: bool = False) -> dict[Id, str]:
    """The texts of the baseline. With `splits_names`, `get_weather` is also `get weather`."""
    names = [f"{r.name} {split_identifier(r.name)}" if splits_names else r.name for r in registrations]
    return {r.id: f"{name} {r.description}" for name, r in zip(names, registrations, strict=True)}
