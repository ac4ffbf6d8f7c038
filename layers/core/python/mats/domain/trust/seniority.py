"""Since when a capability has its text, which decides between copies: docs/decisions/0035.

A text is compared with the one that was registered first, not with the one before: otherwise an owner could turn an old
registration into somebody else's, a few words at a time, and be its senior. Of the first text only a sample is kept.
"""

import hashlib
import heapq
from collections.abc import Set
from functools import lru_cache

from mats.domain.profile.profile import Profile
from mats.domain.trust.near_duplicates import Wording

LEAST = 0.5
"""Estimated word overlap with the first text, and with the first description, as long as nothing begins anew."""
_SAMPLED, _DIGITS = 32, 6
"""Words of a sample, and hexadecimal digits of each word's hash."""
_CACHED = 50_000
"""Words whose hash is kept in memory, some 8 MB."""


def sample_text(profile: Profile) -> str:
    """Samples of the words of the description and of the whole text, with a colon between them."""
    wording = Wording.of(profile)
    return f"{_sample(wording.description)}:{_sample(wording.text)}"


def is_same_work(first: str, profile: Profile) -> bool:
    """Whether both the description and the whole text still resemble those that were sampled first."""
    pairs = zip(first.split(":"), sample_text(profile).split(":"), strict=True)
    return all(_resemble(_hashes(one), _hashes(other)) for one, other in pairs)


def _sample(words: Set[str]) -> str:
    """The smallest hashes of the words: equal words are equally likely to be in both of two samples."""
    return "".join(heapq.nsmallest(_SAMPLED, map(_hash, words)))


@lru_cache(maxsize=_CACHED)
def _hash(word: str) -> str:
    return hashlib.blake2b(word.encode("utf-8", "replace")).hexdigest()[:_DIGITS]


def _hashes(sample: str) -> list[str]:
    return [sample[start : start + _DIGITS] for start in range(0, len(sample), _DIGITS)]


def _resemble(one: list[str], other: list[str]) -> bool:
    """Whether the Jaccard similarity that two samples suggest is high enough; true for two empty ones."""
    union = sorted({*one, *other})[:_SAMPLED]
    common = set(one).intersection(other, union)
    return len(common) >= LEAST * len(union)
