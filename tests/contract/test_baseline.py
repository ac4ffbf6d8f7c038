"""Every index scores by the formula of BM25, as `rank-bm25` has it; and ranks like plain BM25 of whole texts."""

import math
import random

import pytest
from rank_bm25 import BM25Okapi
from scipy.stats import spearmanr

from mats.domain.profile.index_fields import lexical_fields
from mats.domain.search.bm25 import K1, REFERENCE, B
from mats.domain.search.query import Filter
from mats.domain.text.words import index_terms
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


WEIGHTS = [1 / (rank + 20) for rank in range(len(VOCABULARY))]


def descriptions(chance: random.Random, count: int = DOCUMENTS, longest: int = 24) -> list[str]:
    """Common words and rare ones, short texts and long ones."""
    return [" ".join(chance.choices(VOCABULARY, WEIGHTS, k=chance.randint(6, longest))) for _ in range(count)]


class LuceneBm25(BM25Okapi):
    """With the idf of Lucene, which adds 1 inside the logarithm."""

    def _calc_idf(self, nd):
        self.idf = {word: math.log(1 + (self.corpus_size - n + 0.5) / (n + 0.5)) for word, n in nd.items()}


MANY, LONGEST = REFERENCE + 100, 12
"""Below REFERENCE terms are counted otherwise; Lucene keeps lengths exactly up to 40 terms, of which a text has two."""


@pytest.mark.parametrize("index", stores_of("index", "memory"), indirect=True)
def test_the_score_of_a_document_is_that_of_the_reference(index: SearchIndex):
    chance = random.Random(11)
    profiles = [
        a_profile(name=f"x{n:04}", description=text) for n, text in enumerate(descriptions(chance, MANY, LONGEST))
    ]
    index.put([Stored(profile.model_copy(update={"rev": 1})) for profile in profiles])
    texts = [[term for text in lexical_fields(each).values() for term in index_terms(text)] for each in profiles]
    assert max(map(len, texts)) <= 20
    okapi = LuceneBm25 if index.name.startswith("opensearch") else BM25Okapi
    reference = okapi(texts, k1=K1, b=B)
    factors = []
    for _ in range(QUERIES):
        terms = chance.choices(VOCABULARY, WEIGHTS, k=4)
        scores = reference.get_scores(list(dict.fromkeys(terms)))
        expected = {profile.id: score for profile, score in zip(profiles, scores, strict=True) if score > 0}
        found = index.lexical(list(dict.fromkeys(terms)), Filter(), depth=MANY)
        assert found.keys() == expected.keys()
        by_rank = [expected[id] for id in sorted(found, key=lambda id: -found[id])]
        assert by_rank == pytest.approx(sorted(by_rank, reverse=True), rel=1e-5), "another order"
        factors += [found[id] / expected[id] for id in found]
    assert factors == pytest.approx([factors[0]] * len(factors), rel=1e-4), "equal but for a constant"


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
