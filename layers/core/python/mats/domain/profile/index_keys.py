"""The keys by which an index finds a capability otherwise than by words; each begins with a sign that no word has.

`=` its id, name and title, folded; `@` the names of its namespace's products and of its provider; `^` how far
operators trust it; `~` the day of its first registration.
"""

from collections.abc import Iterable
from functools import lru_cache

from mats.domain.profile.profile import Profile
from mats.domain.text.words import index_terms, split_identifier, word_set, words

_ARTICLES = frozenset(("a", "an", "the"))
_LONGEST = 200  # Characters of a folded text that are compared
_USERS = ["io", "github"]  # The start of namespaces of GitHub's users: the next label is the name of one
TOP_LEVEL = word_set("com org net io dev ai app co gov edu info cloud eu us uk de fr nl ch jp cn in me xyz sh")
GENERIC_LABELS = word_set("www api apis mcp a2a rest server servers tool tools skill skills agent agents model models")
_LONGEST_PROVIDER = 60  # Characters; a longer one is no name
TRUST = {f"^{tens}": float(tens) for tens in range(5, 11)}
"""Keys of capabilities with at least half of full trust, and what they are worth beside each other and all others."""
_VERIFIED = "^v"
TRUSTED_KEYS = (*TRUST, _VERIFIED)  # Keys of those whom operators trust: by a rating or a verified provider


def index_keys(profile: Profile) -> list[str]:
    """All keys of a capability: folded id, name and title, its names, how far operators trust it, its day."""
    title = profile.source.title if profile.source else ""
    keys = [f"={key}" for key in dict.fromkeys(map(fold, (profile.id, profile.name, title))) if key]
    keys += map(name_key, names(profile.namespace, profile.provider))
    if profile.trust is not None:
        keys.append(f"^{profile.trust // 10}")
    keys += [_VERIFIED] if profile.provider_verified else []
    return keys + day_keys([profile.day] if profile.day else [])


def fold(text: str) -> str:
    """The form in which ids, names and titles are equal: without case, punctuation, articles and endings, in one piece.

    Empty if nothing of the text is a letter or digit.
    """
    terms = index_terms(split_identifier(text))
    return "".join([term for term in terms if term not in _ARTICLES] or terms)[:_LONGEST]


def day_keys(days: Iterable[str]) -> list[str]:
    """The keys of capabilities that were first registered on these days."""
    return [f"~{day}" for day in days]


def name_key(name: str) -> str:
    """The key of capabilities with this name."""
    return f"@{name}"


@lru_cache(maxsize=20_000)
def names(namespace: str, provider: str) -> frozenset[str]:
    """The names of a namespace's products and of a provider: stems of telling words, with spaces between.

    `io.github.someone.google-maps-mcp` by `Acme, Inc.` has `googl map` and `acm inc`.
    """
    by = words(provider) if len(provider) <= _LONGEST_PROVIDER else []
    spelled = [*(words(label) for label in _telling_labels(namespace)), by]
    stems = (" ".join(index_terms(" ".join(w for w in each if w not in GENERIC_LABELS))) for each in spelled)
    return frozenset(name for name in stems if len(name) > 1)


@lru_cache(maxsize=20_000)
def namespace_words(namespace: str) -> frozenset[str]:
    """The telling words of a namespace, without top-level domains and the names of GitHub's users.

    `com.acme.pay-links` has `acme`, `pay` and `links`; `io.github.someone.weather-mcp` has `weather`.
    """
    return frozenset(words(" ".join(_telling_labels(namespace)))) - GENERIC_LABELS


def _telling_labels(namespace: str) -> list[str]:
    labels = namespace.split(".")
    if labels[:2] == _USERS and len(labels) > 2:
        return labels[3:] or labels[2:]
    return labels[1:] if len(labels) > 1 and labels[0] in TOP_LEVEL else labels
