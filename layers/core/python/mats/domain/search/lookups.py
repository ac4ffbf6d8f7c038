"""What an answer reads of a search index, and the words by which a request is searched."""

from array import array
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.search.query import Filter
from mats.domain.search.scale import LEXICAL_SHARE, Scores, best_first, fuse

if TYPE_CHECKING:
    Vector: TypeAlias = array[float]
else:
    Vector = array  # `array[float]` needs Python 3.12
"""float32 components of Euclidean length 1."""


class NameUse(NamedTuple):
    """How a registry uses a name, as far as its caller sees it."""

    owned: int  # Capabilities that have it
    elsewhere: int  # Others that have its words in their text
    spaces: Set[str]  # The namespaces of those that have it
    trusted: Set[str]  # Of these, where some are trusted


class Lookups(Protocol):
    """BM25 over the lexical fields, exact or approximate k-NN over the vectors, and a few look-ups by key.

    Each may raise DependencyFailed: the index did not answer; safe to retry.
    """

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Scores:
        """The BM25 scores above 0 of at most `depth`, best first, ties by id; each term counts once, any may match."""

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Scores:
        """The cosines of at most `depth`, best first, ties by id."""

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Mapping[Id, float]:
        """The BM25 score of each of these; 0.0 for one without any of the terms."""

    def cosine_of(self, vector: Vector, ids: Collection[Id]) -> Mapping[Id, float]:
        """The cosine of each of these that has a vector."""

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        """The indexed profiles of the findable ones of these."""

    def exact(self, keys: Collection[str], admitted: Filter, *, most: int) -> Sequence[Id]:
        """At most `most` capabilities with one of these keys (`domain/profile/index_keys`), the most trusted first."""

    def count(self, admitted: Filter) -> int:
        """How many capabilities the filter admits."""

    def names(self, asked: Collection[str], admitted: Filter) -> Mapping[str, NameUse]:
        """How the capabilities that the filter admits use those of these names that any of them has.

        Names are as those of `domain/profile/index_keys`.
        """

    def spellings(self, words: Collection[str], admitted: Filter) -> Mapping[str, str]:
        """For each of these words that nothing visible has, the nearest word of what the filter admits, if one is near.

        Near is as of `domain/text/spelling`, with the same first letter.
        """

    def namespaces(self, admitted: Filter) -> Collection[str]:
        """Namespaces of capabilities that the filter admits. Of very many, some may be missing."""


def fetch_admitted(index: Lookups, ids: Sequence[Id], admitted: Filter) -> list[Profile]:
    """The profiles of these ids that the filter admits, in the order given."""
    found = index.fetch(ids) if ids else {}
    return [profile for id in ids if (profile := found.get(id)) and admitted.admits(profile)]


_GUESSED = 0.7  # Weight of a word that a misspelt one is taken for


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalQuery:
    """The words by which a request is searched."""

    terms: Sequence[str]  # Its own
    guessed: Sequence[str] = ()  # What those of them that the registry does not have may mean

    def search(self, index: Lookups, admitted: Filter, *, depth: int) -> Scores:
        """Scores of the best by the words, and at a lower weight by what misspelt words may mean."""
        found = index.lexical(self.terms, admitted, depth=depth)
        if not self.guessed:
            return found
        guesses = index.lexical(self.guessed, admitted, depth=depth)
        known = {**index.bm25_of(self.terms, [id for id in guesses if id not in found]), **found}
        more = index.bm25_of(self.guessed, [id for id in found if id not in guesses])
        return _sum_of(known, {**guesses, **more})

    def of(self, index: Lookups, ids: Collection[Id]) -> Scores:
        """The scores of these, by the same."""
        found = index.bm25_of(self.terms, ids)
        return _sum_of(found, index.bm25_of(self.guessed, ids)) if self.guessed else found


def search_both(
    index: Lookups, words: LexicalQuery, vector: Vector | None, admitted: Filter, *, depth: int
) -> tuple[list[Id], Scores]:
    """The hits of both sides, fused, best first, and the cosines of the neural one; without a vector by words alone."""
    cosine = index.neural(vector, admitted, depth=depth) if vector else {}
    return best_first(fuse(words.search(index, admitted, depth=depth), cosine, lexical_share=LEXICAL_SHARE)), cosine


def _sum_of(known: Scores, guesses: Scores) -> dict[Id, float]:
    return {id: known.get(id, 0.0) + _GUESSED * guesses.get(id, 0.0) for id in {**known, **guesses}}
