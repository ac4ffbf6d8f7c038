"""What a preview takes from an index it must get right on every index: the scores of words, and nothing written."""

import json
import random
import statistics

import pytest

from mats.domain.profile import profile_of
from mats.domain.query import Filter
from mats.domain.registration import Registration
from mats.domain.text import query_terms
from mats.ports import SearchIndex, Stored
from mats.usecases.overlay import Overlay, WordScores
from tests.conftest import ROOT
from tests.fakes import FakeEncoder


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (ROOT / "examples" / name).read_text().splitlines()]


@pytest.fixture
def adapter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


on_every_index = pytest.mark.parametrize(
    "adapter", ["sqlite", pytest.param("aws", marks=pytest.mark.server)], indirect=True
)
"""All but the one in memory, whose scores are no BM25."""


@pytest.fixture
def filled(index: SearchIndex) -> SearchIndex:
    profiles = [profile_of(Registration.parse(row), trust=None, origin="") for row in lines("registry.jsonl")]
    index.put([Stored(profile.model_copy(update={"rev": 1})) for profile in profiles])
    return index


@on_every_index
def test_the_estimate_of_bm25_is_near_what_the_index_gives(filled: SearchIndex):
    ratios = []
    for query in random.Random(3).sample([row["text"] for row in lines("queries.jsonl")], 20):
        terms = query_terms(query)
        for hit in filled.lexical(terms, Filter(), depth=6):
            scores = WordScores(filled, Filter(), hit.id)
            scores.learn(terms)
            ratios.append(scores.score(terms, filled.fetch([hit.id])[hit.id]) / hit.score)
    parts = statistics.quantiles(ratios, n=20)
    assert 0.9 < statistics.median(ratios) < 1.1
    assert parts[0] > 0.85
    assert parts[-1] < 1.35


@on_every_index
def test_a_candidate_laid_over_an_index_stands_where_it_would_and_is_not_there(filled: SearchIndex):
    kept = next(iter(filled.fetch(["com.amazon.bedrock/amazon.nova-lite-v1:0"]).values()))
    candidate = kept.model_copy(update={"namespace": "org.copy"})
    overlay = Overlay.over(filled, Stored(candidate, FakeEncoder().encode_query("x")), Filter())
    terms = query_terms("inexpensive multimodal pictures documents video clips")
    before = filled.lexical(terms, Filter(), depth=20)
    overlay.scores.learn(terms)
    first = overlay.lexical(terms, Filter(), depth=20)[:2]
    assert {hit.id for hit in first} == {kept.id, candidate.id}
    assert first[0].score < 1.2 * first[1].score
    assert filled.lexical(terms, Filter(), depth=20) == before
    assert candidate.id not in filled.fetch([candidate.id])
