"""Explanation of a match: which words of the query occur in which fields of a capability."""

from collections.abc import Collection, Set
from itertools import pairwise
from typing import NamedTuple

from mats.domain.index_fields import lexical_fields, searched_text
from mats.domain.profile import Profile
from mats.domain.text import Pair, content_words, may_have_stem, stem, words

_PREFIX = 2
"""Words that share a stem share at least these first letters; comparing them first saves most stemming."""


class MatchedWords(NamedTuple):
    """Words of the query that matched, in its order, and the fields they matched in, in index order.

    `spelled` has them as the capability spells them, in lower case and alphabetical order, for highlighting.
    """

    matched: tuple[str, ...]
    fields: tuple[str, ...]
    spelled: tuple[str, ...] = ()


def explain(terms: Collection[str], profile: Profile) -> MatchedWords:
    """The terms of a query that occur in a profile, by stem as in the index; neural matches have no terms to show."""
    stems = {stem(term): term for term in terms}
    starts = tuple({term[:_PREFIX] for term in terms})
    matched: set[str] = set()
    spelled: set[str] = set()
    fields: list[str] = []
    for name, text in lexical_fields(profile).items():
        here = {word: stem(word) for word in set(words(text)) if word.startswith(starts)}
        said = {word for word, its_stem in here.items() if its_stem in stems}
        if said:
            matched.update(here[word] for word in said)
            spelled |= said
            fields.append("positive_examples" if name == "examples" else name)
    return MatchedWords(tuple(term for s, term in stems.items() if s in matched), tuple(fields), tuple(sorted(spelled)))


def pairs_found(asked: Set[Pair], profile: Profile) -> int:
    """How many of a query's pairs of words are also neighbours near the start of a field of the profile."""
    text = searched_text(profile)
    said = {each for each in {each for pair in asked for each in pair} if may_have_stem(text.lowered, each)}
    possible = [pair for pair in asked if said.issuperset(pair)]
    starts = tuple({each[:_PREFIX] for pair in possible for each in pair})
    found: set[Pair] = set()
    for field in text.fields if possible else ():
        lowered = field.lower()
        if any(may_have_stem(lowered, one) and may_have_stem(lowered, other) for one, other in possible):
            stems = [stem(word) if word.startswith(starts) else "" for word in content_words(field)]
            found.update(asked & set(pairwise(stems)))
    return len(found)
