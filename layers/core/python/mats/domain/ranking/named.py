"""Products that a request names: words of it that are labels of a namespace or a provider in the registry.

Also the keys by which an index finds a capability otherwise than by words. Each begins with a sign that no word has.
"""

from functools import lru_cache

from mats.domain.profile.profile import Profile
from mats.domain.ranking.exact import exact_keys
from mats.domain.ranking.query import GENERIC_LABELS, namespace_words
from mats.domain.text.words import index_terms, words

_MOST_WORDS = 4
"""Words of a provider that are labels; a longer one is a sentence."""
TRUST = {f"^{tens}": float(tens) for tens in range(5, 11)}
"""Keys of capabilities with at least half of full trust, and what they are worth beside each other and all others."""
_VERIFIED = "^v"
TRUSTED_KEYS = (*TRUST, _VERIFIED)
"""Keys of those whom operators trust: by a rating or a verified provider."""


def index_keys(profile: Profile) -> list[str]:
    """All keys of a capability: its id, name and title, its labels, and how far operators trust it."""
    keys = [*exact_keys(profile), *map(label_key, labels(profile.namespace, profile.provider))]
    if profile.trust is not None:
        keys.append(f"^{profile.trust // 10}")
    return [*keys, _VERIFIED] if profile.provider_verified else keys


def label_key(word: str) -> str:
    """The key of capabilities with this label, in the form of `labels`."""
    return f"@{word}"


@lru_cache(maxsize=20_000)
def labels(namespace: str, provider: str) -> frozenset[str]:
    """The telling words of a namespace and a provider, as stems."""
    named = frozenset(words(provider)[:_MOST_WORDS]) - GENERIC_LABELS
    return frozenset(index_terms(" ".join(named | namespace_words(namespace))))
