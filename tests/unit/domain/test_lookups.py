"""The weight of what misspelt words may mean."""

from collections.abc import Collection, Mapping, Sequence

import pytest

from mats.domain.capability.capability import Id
from mats.domain.search.lookups import LexicalQuery

A, B = Id("n/a"), Id("n/b")


class Scored:
    """An index with the score of each term for each id."""

    scores: Mapping[str, Mapping[Id, float]] = {"refund": {A: 4.0}, "payment": {A: 2.0, B: 3.0}}

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> dict[Id, float]:
        return {id: sum(self.scores.get(term, {}).get(id, 0.0) for term in terms) for id in ids}

    def lexical(self, terms: Sequence[str], admitted: object, *, depth: int) -> dict[Id, float]:
        found = self.bm25_of(terms, [A, B])
        return {id: score for id, score in found.items() if score > 0}


def test_a_guess_is_worth_70_per_cent():
    query, index, expected = LexicalQuery(terms=["refund"], guessed=["payment"]), Scored(), {A: 5.4, B: 2.1}
    assert query.of(index, [A, B]) == pytest.approx(expected)
    assert query.search(index, None, depth=9) == pytest.approx(expected)
