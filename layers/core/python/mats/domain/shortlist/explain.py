"""Explanation of a match: which words of the query occur in which fields of a capability."""

from collections.abc import Collection, Set
from functools import lru_cache
from typing import NamedTuple

from mats.domain.profile.index_fields import lexical_fields, searched_text
from mats.domain.profile.profile import Profile
from mats.domain.text.words import Pair, content_words, may_have_stem, stem, words

_CACHED = 4_096
"""Fields whose stems are kept, a kilobyte each."""
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
    possible = _possible_pairs(asked, text.lowered)
    found: set[Pair] = set()
    for field in filter(None, text.fields if possible else ()):
        for one, other in _possible_pairs(possible, field.lower()):
            if f" {one} {other} " in _stems_in_order(field):
                found.add((one, other))
    return len(found)


@lru_cache(maxsize=_CACHED)
def _stems_in_order(field: str) -> str:
    """The stems of the content words, with a space before and after each."""
    return f" {' '.join(map(stem, content_words(field)))} "


def _possible_pairs(asked: Collection[Pair], lowered: str) -> list[Pair]:
    """The pairs of which a text in lower case may have both stems."""
    return [pair for pair in asked if may_have_stem(lowered, pair[0]) and may_have_stem(lowered, pair[1])]
