"""Find the capability that a request names exactly (docs/decisions/0079), or a product (docs/decisions/0082).

Ids, names and titles are folded: without case, punctuation, articles and endings such as the plural, in one piece. A
product is named by a label of a namespace or a provider in the registry: its capabilities gain, and no others are
excluded, because names are free. Also the keys by which an index finds a capability otherwise than by words: each
begins with a sign that no word has.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import IntEnum
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.profile.index_fields import searched_text
from mats.domain.profile.profile import Profile
from mats.domain.ranking.query import GENERIC_LABELS, Scope, is_listing, named_words, namespace_words, telling_labels
from mats.domain.text.words import (
    STOP_WORDS,
    content_words,
    index_terms,
    may_have_stem,
    spelled_words,
    split_identifier,
    word_set,
    words,
)
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
    return "".join(_terms(text))[:_LONGEST]


def _terms(text: str) -> list[str]:
    terms = index_terms(split_identifier(text))
    return [term for term in terms if term not in _ARTICLES] or terms


@lru_cache(maxsize=_CACHED)
def asked_keys(query: str) -> tuple[str, ...]:
    """Keys for an exact match: of the whole query, of each id in it, and of its runs of a few words."""
    terms = _terms(query)[:_MOST_WORDS]
    spans = (
        "".join(terms[start : start + length])[:_LONGEST]
        for length in _SPAN_WORDS
        for start in range(max(0, len(terms) - length + 1))
    )
    ids = (fold(word) for word in query.split() if "/" in word)
    return tuple(f"={key}" for key in dict.fromkeys((fold(query), *ids, *spans)) if key)


def exactness(query: str, profile: Profile) -> Exactness | None:
    """How exactly a query, for which an index found a profile by `asked_keys`, matches it; None if it does not."""
    asked, named = fold(query), [profile.name, profile.source.title if profile.source else ""]
    if asked == fold(profile.id):
        return Exactness.ID
    if asked in map(fold, named):
        return Exactness.SPELLED if _spelling(query) in map(_spelling, named) else Exactness.NAME
    long = [text for text in named if len(set(content_words(split_identifier(text)))) >= _SPAN_WORDS[0]]
    contained = any(f"={fold(text)}" in asked_keys(query) for text in (profile.id, *long))
    return Exactness.CONTAINS if contained else None


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


_LONGEST_PROVIDER = 60  # Characters; a longer one is no name
TRUST = {f"^{tens}": float(tens) for tens in range(5, 11)}
"""Keys of capabilities with at least half of full trust, and what they are worth beside each other and all others."""
_VERIFIED, PINNED = "^v", "^p"
TRUSTED_KEYS = (*TRUST, _VERIFIED)  # Keys of those whom operators trust: by a rating or a verified provider


def index_keys(profile: Profile) -> list[str]:
    """All keys of a capability: its folded id, name and title, its names, how far operators trust it, and its pin."""
    title = profile.source.title if profile.source else ""
    keys = [f"={key}" for key in dict.fromkeys(map(fold, (profile.id, profile.name, title))) if key]
    keys += map(name_key, names(profile.namespace, profile.provider))
    if profile.trust is not None:
        keys.append(f"^{profile.trust // 10}")
    keys += [_VERIFIED] if profile.provider_verified else []
    return [*keys, PINNED] if profile.pinned else keys


def name_key(name: str) -> str:
    """The key of capabilities with this name."""
    return f"@{name}"


@lru_cache(maxsize=20_000)
def names(namespace: str, provider: str) -> frozenset[str]:
    """The names of a namespace's products and of a provider: stems of telling words, with spaces between.

    `io.github.someone.google-maps-mcp` by `Acme, Inc.` has `googl map` and `acm inc`.
    """
    by = words(provider) if len(provider) <= _LONGEST_PROVIDER else []
    spelled = [*(words(label) for label in telling_labels(namespace)), by]
    stems = (" ".join(index_terms(" ".join(w for w in each if w not in GENERIC_LABELS))) for each in spelled)
    return frozenset(name for name in stems if len(name) > 1)


class NameUse(NamedTuple):
    """How a registry uses a name, as far as its caller sees it."""

    owned: int  # Capabilities that have it
    elsewhere: int  # Others that have its words in their text
    spaces: Set[str]  # The namespaces of those that have it
    trusted: Set[str]  # Of these, where some are trusted


_MARKS = word_set("on with in via from using")  # Words before the name of a product
_BETWEEN = word_set("the my our your a an")
_TOKEN = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(r"(?:\w+://|www\.)\S+|\S+@\S+")
_MOST_TOKENS, _MOST_IN_NAME = 40, 3
_NAME, _ORDINARY = 0.5, 0.2
"""Share of the capabilities with its words that own a name, from which on it is one, and up to which it is no name."""
_UNMARKED = {True: 0.6, False: 0.25}
"""Strength of a name that the sentence does not mark as one: of a trusted product, and of another."""
_GAIN, _LOSS = 0.1, 0.2
"""Gain of a product's capabilities, and loss of those that do not mention it, in the mixture of measurements."""
STRONG = 0.5  # Strength of a name from which on its product is searched for itself, and told
_MOST_SPACES = 50


@dataclass(frozen=True, slots=True)
class Products:
    """The names in a request, each with its strength in (0, 1], the namespaces that it counts for, and its spelling."""

    strengths: Mapping[str, float]
    spaces: Mapping[str, Set[str]]
    spelled: Mapping[str, str]

    @property
    def strong(self) -> list[str]:
        return [name for name, strength in self.strengths.items() if strength >= STRONG]

    @property
    def note(self) -> str:
        """The note for the reader of an answer; empty without a strong name."""
        said = ", ".join(self.spelled[name] for name in self.strong)
        return f"ranks what belongs to {said} higher, which the query names" if said else ""

    def within(self, scope: Scope) -> Scope:
        """The scope of what has one of the strong names."""
        spaces = frozenset[str]().union(*(self.spaces[name] for name in self.strong))
        few = spaces if len(spaces) <= _MOST_SPACES else frozenset[str]()
        return replace(scope, keys=frozenset(map(name_key, self.strong)), exact_namespaces=few)

    def shift(self, profile: Profile) -> float:
        """The amount to add to the mixture of a capability's measurements."""
        has = names(profile.namespace, profile.provider)
        own = [s for name, s in self.strengths.items() if name in has and profile.namespace in self.spaces[name]]
        lowered = searched_text(profile).lowered
        if own or any(all(may_have_stem(lowered, word) for word in name.split()) for name in self.strengths):
            return _GAIN * max(own, default=0.0)
        return -_LOSS * max(self.strengths.values())


NO_PRODUCTS = Products({}, {}, {})


class _Token(NamedTuple):
    lowered: str
    stem: str
    capital: bool
    first: bool


@lru_cache(maxsize=256)
def _tokens(text: str) -> Sequence[_Token]:
    found: list[_Token] = []
    for match in islice(_TOKEN.finditer(_ADDRESS.sub(lambda found: " " * len(found[0]), text)), _MOST_TOKENS):
        before = text[: match.start()].rstrip(" \"'(*")
        first = not before or before[-1] in ".!?:\n"
        found += [_Token(match[0].lower(), term, match[0][0].isupper(), first) for term in index_terms(match[0])[:1]]
    shouted = sum(token.capital for token in found) > len(found) / 2 > 1
    return [token._replace(capital=False) for token in found] if shouted else found


def _spans(tokens: Sequence[_Token]) -> Iterator[tuple[str, range]]:
    """The runs of a few words that may be names, and where they are."""
    for start in range(len(tokens)):
        for stop in range(start + 1, min(start + _MOST_IN_NAME, len(tokens)) + 1):
            if stop > start + 1 or tokens[start].lowered not in STOP_WORDS:
                yield " ".join(token.stem for token in tokens[start:stop]), range(start, stop)


def asked_names(text: str) -> list[str]:
    """The runs of words of a request that may be names."""
    return list(dict.fromkeys(name for name, _ in _spans(_tokens(text))))


def products_named(text: str, uses: Mapping[str, NameUse]) -> Products:
    """The products that a request names, by the use of its `asked_names`."""
    if not uses:
        return NO_PRODUCTS
    tokens, asked = _tokens(text), named_words(text)
    places = [(name, span) for name, span in _spans(tokens) if name in uses]
    covered = {place for _, span in places for place in span}
    strengths: dict[str, float] = {}
    spaces: dict[str, Set[str]] = {}
    spelled: dict[str, str] = {}
    for name, span in places:
        use, run, first = uses[name], _capitals(tokens, span), tokens[span.start]
        owned = use.owned / (use.owned + use.elsewhere)
        strength = min(1.0, max(0.0, (owned - _ORDINARY) / (_NAME - _ORDINARY)))
        told = first.lowered in asked or (first.capital and not first.first) or _is_marked(tokens, run)
        strength *= 1.0 if told else _UNMARKED[bool(use.trusted)]
        strength *= (len(covered.intersection(run)) / len(run)) ** 2  # `Google Drive` is more than `Google`
        if strength > strengths.get(name, 0.0):
            strengths[name], spaces[name] = strength, use.trusted or use.spaces
            spelled[name] = " ".join(token.lowered for token in tokens[span.start : span.stop])
    return Products(strengths, spaces, spelled)


def _capitals(tokens: Sequence[_Token], span: range) -> range:
    """The span with the capitalised words around it, if it begins with one itself."""
    start, stop = span.start, span.stop
    if tokens[start].capital:
        while start > 0 and tokens[start - 1].capital and not tokens[start].first and not tokens[start - 1].first:
            start -= 1
        while stop < len(tokens) and tokens[stop].capital and not tokens[stop].first:
            stop += 1
    return range(start, stop)


def _is_marked(tokens: Sequence[_Token], run: range) -> bool:
    before = [token.lowered for token in tokens[max(0, run.start - 2) : run.start]]
    return bool(before) and (before[-1] in _MARKS or (before[-1] in _BETWEEN and before[0] in _MARKS))


def listed_spaces(text: str, uses: Mapping[str, NameUse], *, rated: bool) -> list[str]:
    """The namespaces that a request lists, if it does: those that operators trust, or any if they rated nobody."""
    asked = frozenset(index_terms(" ".join(named_words(text)))) if is_listing(text) else frozenset[str]()
    for name in uses:
        if asked and asked == frozenset(name.split()):
            return sorted(uses[name].trusted if rated else uses[name].spaces)
    return []


def nearest_spaces(wanted: str, known: Collection[str]) -> list[str]:
    """At most three known namespaces, or what is above them, that a filter which matches none may mean."""
    every = {
        ".".join(parts[:end]) for parts in (space.split(".") for space in known) for end in range(1, len(parts) + 1)
    }
    plain = wanted.lower().rstrip("*").rstrip(".")
    if plain in every:
        return [plain]
    asked = namespace_words(plain)
    sharing = sorted(space for space in known if any(w in own for w in asked for own in namespace_words(space)))
    near = get_close_matches(plain, sorted(every)[:_MOST_COMPARED], n=_NEAREST, cutoff=_ALIKE)
    return list(dict.fromkeys((*near, *sharing)))[:_NEAREST]


_NEAREST, _MOST_COMPARED, _ALIKE = 3, 2_000, 0.75
