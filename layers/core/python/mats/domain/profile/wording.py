"""The words of an owner's text, to tell copies and new versions: compared however they are spelled.

A text is as old as its first version, not the one before: otherwise an owner could turn an old registration into
somebody else's, a few words at a time. Of the first text only a sample is kept. docs/decisions/0035.
"""

import hashlib
import heapq
import re
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache

from mats.domain.profile.profile import Profile, SourceText
from mats.domain.text.fence import skeleton
from mats.domain.text.words import split_identifier, words

SIMILARITY = 0.65  # Word overlap (Jaccard) from which on two texts are nearly the same: docs/decisions/0035
_SHORTEST_DESCRIPTION = 20  # Characters; shorter descriptions coincide by chance
_READ = 4_000  # Characters of each text that are compared; bounds the work per answer
_CACHED = 4_096  # Wordings kept in memory, a few kilobytes each
_LETTERS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of an owner's text, of its description alone, and the description's letters without any spaces.

    The latter two are empty if the description is too short to compare.
    """

    text: frozenset[str]
    description: frozenset[str]
    letters: str

    @classmethod
    def of(cls, profile: Profile) -> "Wording":
        """The wording of a profile; cached by its text."""
        source = profile.source or SourceText()
        texts = (source.parameter_names, source.parameter_text, source.other)
        rest = " ".join((*texts, *profile.tags, *profile.examples_by_owner))
        return _wording(profile.name, source.description[:_READ], rest[:_READ])

    def describes_the_same(self, other: "Wording", least: float = SIMILARITY) -> bool:
        """True if the descriptions are nearly the same, be it with other spaces."""
        if not self.letters:
            return False
        return self.letters == other.letters or _overlap(self.description, other.description, least)

    def is_near(self, other: "Wording", least: float = SIMILARITY) -> bool:
        """True if the whole texts or the descriptions are nearly the same."""
        return _overlap(self.text, other.text, least) or self.describes_the_same(other, least)


@lru_cache(maxsize=_CACHED)
def _wording(name: str, description: str, rest: str) -> Wording:
    described = skeleton(description)
    about = frozenset(words(described))
    text = about.union(words(skeleton(f"{split_identifier(name)} {rest}")))
    if len(description) < _SHORTEST_DESCRIPTION:
        return Wording(text, frozenset(), "")
    return Wording(text, about, _LETTERS.sub("", described))


def _overlap(one: frozenset[str], other: frozenset[str], least: float) -> bool:
    """True if the Jaccard similarity is at least this, greater than 0; the sizes alone rule out most pairs."""
    size, others = len(one), len(other)
    if size < least * others or others < least * size or not size:
        return False
    common = len(one & other)
    return common >= least * (size + others - common)


LEAST = 0.5
"""Estimated word overlap with the first text, and with the first description, as long as nothing begins anew."""
_SAMPLED, _DIGITS = 32, 6  # Words of a sample, and hexadecimal digits of each word's hash
_CACHED_HASHES = 50_000  # Words whose hash is kept in memory, some 8 MB


def sample_text(profile: Profile) -> str:
    """Samples of the words of the description and of the whole text, with a colon between them."""
    wording = Wording.of(profile)
    return f"{_sample(wording.description)}:{_sample(wording.text)}"


def is_same_work(first: str, profile: Profile) -> bool:
    """True if both the description and the whole text still resemble those that were sampled first."""
    pairs = zip(first.split(":"), sample_text(profile).split(":"), strict=True)
    return all(_resemble(one, other) for one, other in pairs)


def _sample(words: Set[str]) -> str:
    """The smallest hashes of the words: equal words are equally likely to be in both of two samples."""
    return "".join(heapq.nsmallest(_SAMPLED, map(_hash, words)))


@lru_cache(maxsize=_CACHED_HASHES)
def _hash(word: str) -> str:
    return hashlib.blake2b(word.encode("utf-8", "replace")).hexdigest()[:_DIGITS]


def _resemble(one: str, other: str) -> bool:
    """True if the Jaccard similarity that two samples suggest is high enough; true for two empty ones."""
    ours, theirs = ({sample[n : n + _DIGITS] for n in range(0, len(sample), _DIGITS)} for sample in (one, other))
    union = sorted(ours | theirs)[:_SAMPLED]
    common = ours.intersection(theirs, union)
    return len(common) >= LEAST * len(union)
