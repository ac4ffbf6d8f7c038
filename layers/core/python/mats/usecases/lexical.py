"""BM25 for a request: by its words, by what misspelt ones of them may mean, and by what synonyms say instead."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.domain.ranking.blend import Scores, best_first
from mats.domain.ranking.query import Filter
from mats.domain.text.words import query_terms
from mats.ports import Hit, SearchIndex

_GUESSED = 0.7  # Weight of a word that a misspelt one is taken for
_REWRITTEN = 0.9  # Weight of BM25 for a synonym, against that for the word of the request itself


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalQuery:
    """The texts by which a request is searched.

    Args:
        terms: Its words.
        guessed: What those of them that the registry does not have may mean.
        rewrites: The request in synonyms.
    """

    terms: Sequence[str]
    guessed: Sequence[str] = ()
    rewrites: Sequence[str] = ()

    def search(self, index: SearchIndex, admitted: Filter, *, depth: int) -> Scores:
        """Scores of the best by the words or, a little less, by synonyms, and by what misspelt words may mean."""
        found = scores_of(index.lexical(self.terms, admitted, depth=depth))
        for rewrite in self.rewrites:
            found = _better(found, scores_of(index.lexical(query_terms(rewrite), admitted, depth=depth)))
        if self.guessed:
            return self.widen(found, index, admitted, depth=depth)
        return {id: found[id] for id in best_first(found)[:depth]} if self.rewrites else found

    def widen(self, found: Scores, index: SearchIndex, admitted: Filter, *, depth: int) -> Scores:
        """These scores with those by what misspelt words may mean, for the hits of either."""
        guesses = scores_of(index.lexical(self.guessed, admitted, depth=depth))
        known = {**index.bm25_of(self.terms, [id for id in guesses if id not in found]), **found}
        more = index.bm25_of(self.guessed, [id for id in found if id not in guesses])
        return _sum_of(known, {**guesses, **more})

    def of(self, index: SearchIndex, ids: Collection[Id]) -> Scores:
        """The scores of these capabilities."""
        found = index.bm25_of(self.terms, ids)
        if self.guessed:
            found = _sum_of(found, index.bm25_of(self.guessed, ids))
        for rewrite in self.rewrites:
            found = _better(found, index.bm25_of(query_terms(rewrite), ids))
        return found


def scores_of(hits: Sequence[Hit] | None) -> dict[Id, float]:
    """The scores of hits by id; none of no hits."""
    return {hit.id: hit.score for hit in hits or ()}


def _sum_of(known: Scores, guesses: Scores) -> dict[Id, float]:
    return {id: known.get(id, 0.0) + _GUESSED * guesses.get(id, 0.0) for id in {**known, **guesses}}


def _better(scores: Scores, rewritten: Scores) -> dict[Id, float]:
    """The better of both scores of each."""
    weighed = {id: _REWRITTEN * score for id, score in rewritten.items()}
    return {**weighed, **{id: max(score, weighed.get(id, 0.0)) for id, score in scores.items()}}
