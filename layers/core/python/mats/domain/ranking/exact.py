"""Exact matches: a query that is, or contains, the id, the name or the title of a capability: docs/decisions/0079.

Ids, names and titles are folded: without case, punctuation, articles and endings such as the plural, in one piece.
"""

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.profile.profile import Profile
from mats.domain.text.words import content_words, index_terms, spelled_words, split_identifier
from mats.domain.trust.near_duplicates import DAY, trust_of

_ARTICLES = frozenset(("a", "an", "the"))
_LONGEST = 200  # Characters of a folded text that are compared
_SPAN_WORDS = range(3, 9)
"""Words of a title or a name that a longer query may contain: shorter ones are ordinary words of requests."""
_MOST_WORDS = 40  # Words of a query that are searched for titles and names
_CACHED = 256  # Queries whose keys are kept: one answer needs them for the look-up and for each profile found
MOST_READ = 50  # Profiles that are read for one query
MOST_EXACT = 5  # Exact matches that are placed before others


class Exactness(IntEnum):
    """How a query names a capability, the least exact first."""

    CONTAINS = 1
    NAME = 2  # The name or the title, folded
    SPELLED = 3  # The name or the title, endings included
    ID = 4
    TAUGHT = 5  # An operator taught the query: it comes first, whatever it is named


def fold(text: str) -> str:
    """The form in which ids, names and titles are equal; empty if nothing of the text is a letter or digit."""
    return _join(_terms(text))


def _terms(text: str) -> list[str]:
    terms = index_terms(split_identifier(text))
    return [term for term in terms if term not in _ARTICLES] or terms


def _join(terms: Iterable[str]) -> str:
    return "".join(terms)[:_LONGEST]


def exact_keys(profile: Profile) -> list[str]:
    """Keys of a capability for exact matches: its folded id, name and title."""
    title = profile.source.title if profile.source else ""
    return [f"={key}" for key in dict.fromkeys(map(fold, (profile.id, profile.name, title))) if key]


class _QueryKeys(NamedTuple):
    """A query as it is compared with ids, names and titles."""

    key: str
    spelling: list[str]
    keys: tuple[str, ...]


def asked_keys(query: str) -> tuple[str, ...]:
    """Keys for an exact match: of the whole query, of each id in it, and of its runs of a few words."""
    return _query_keys(query).keys


@lru_cache(maxsize=_CACHED)
def _query_keys(query: str) -> _QueryKeys:
    terms = _terms(query)[:_MOST_WORDS]
    spans = (
        _join(terms[start : start + length])
        for length in _SPAN_WORDS
        for start in range(max(0, len(terms) - length + 1))
    )
    ids = (fold(word) for word in query.split() if "/" in word)
    whole = fold(query)
    keys = tuple(f"={key}" for key in dict.fromkeys((whole, *ids, *spans)) if key)
    return _QueryKeys(whole, _spelling(query), keys)


def exactness(query: str, profile: Profile) -> Exactness | None:
    """How exactly a query, for which an index found a profile by `asked_keys`, matches it; None if it does not."""
    asked, named = _query_keys(query), [profile.name, profile.source.title if profile.source else ""]
    if asked.key == fold(profile.id):
        return Exactness.ID
    if asked.key in map(fold, named):
        return Exactness.SPELLED if asked.spelling in map(_spelling, named) else Exactness.NAME
    long = [text for text in named if len(set(content_words(split_identifier(text)))) >= _SPAN_WORDS[0]]
    return None if set(asked.keys).isdisjoint(f"={fold(text)}" for text in (profile.id, *long)) else Exactness.CONTAINS


def _spelling(text: str) -> list[str]:
    return spelled_words(split_identifier(text))


def order_of_exact(exact: Exactness, profile: Profile, *, unrated: int) -> tuple[bool, bool, int, int, bool, str]:
    """The sort key of an exact match among others."""
    trust, deprecated = trust_of(profile, unrated), profile.lifecycle is Lifecycle.DEPRECATED
    day = profile.first_registered[:DAY]
    return exact is not Exactness.ID, exact is Exactness.CONTAINS, -trust, -exact, deprecated, day


def exact_first(query: str, profiles: Iterable[Profile], *, unrated: int) -> dict[Id, Exactness]:
    """The exact matches among profiles, ids first, then by trust, spelling, lifecycle and day of registration.

    At most `MOST_EXACT`: names and titles are free, so that a flood of them must not take the whole answer.
    """
    found = [(exact, profile) for profile in profiles if (exact := exactness(query, profile))]
    found.sort(key=lambda one: order_of_exact(*one, unrated=unrated))
    return {profile.id: exact for exact, profile in found[:MOST_EXACT]}
