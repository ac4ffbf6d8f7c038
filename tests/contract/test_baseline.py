"""Both indices rank like plain BM25 if capabilities have only a name and a description."""

import random

import pytest
from scipy.stats import spearmanr

from mats.domain.search.query import Filter
from mats.evaluation.systems.catalogue import PlainBm25
from mats.ports import SearchIndex, Stored
from tests.builders import a_profile, a_registration
from tests.contract.conftest import stores_of

DOCUMENTS, QUERIES = 150, 40
AGREEMENT = 0.95
"""Spearman's rho. The indices add 1 inside the logarithm of the idf: words that many documents have count for more."""


PREFIXES = ("bako", "dumo", "filo", "gopa", "himu", "jola", "keru", "lomi", "napo")
VOCABULARY = [a + b + c for a in PREFIXES for b in ("rap", "ton", "zuk", "gam") for c in "bdkmp"]
"""Words that no stemmer touches and no list of stop words knows."""


def descriptions(chance: random.Random) -> list[str]:
    """Common words and rare ones, short texts and long ones."""
    weights = [1 / (rank + 20) for rank in range(len(VOCABULARY))]
    return [" ".join(chance.choices(VOCABULARY, weights, k=chance.randint(6, 24))) for _ in range(DOCUMENTS)]


@pytest.mark.parametrize("index", stores_of("index", "memory"), indirect=True)
def test_an_index_ranks_as_plain_bm25_does(index: SearchIndex):
    chance = random.Random(7)
    texts = descriptions(chance)
    plain = PlainBm25({a_registration(name=f"x{n:03}").id: f"x{n:03} {text}" for n, text in enumerate(texts)})
    index.put(
        [
            Stored(a_profile(name=f"x{n:03}", description=text).model_copy(update={"rev": 1}))
            for n, text in enumerate(texts)
        ]
    )
    agreements = []
    for _ in range(QUERIES):
        terms = chance.sample(VOCABULARY, 4)
        expected = plain.search(" ".join(terms), DOCUMENTS)
        found = list(index.lexical(terms, Filter(), depth=DOCUMENTS))
        assert set(found) == set(expected)
        place = {id: rank for rank, id in enumerate(found)}
        agreements.append(spearmanr(range(len(expected)), [place[id] for id in expected]).statistic)
    assert min(agreements) > AGREEMENT, sorted(agreements)[:5]
