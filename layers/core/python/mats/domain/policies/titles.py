"""Rank candidates higher whose title the request has: docs/decisions/0109.

A long description has most words of a request somewhere; a title is short, and says what a capability is or does.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from mats.domain.policies.policy import Ask, Policy
from mats.domain.profile.profile import Profile
from mats.domain.search.blend import Scoring
from mats.domain.search.candidate import Candidate
from mats.domain.text.words import first_sentence, split_identifier, stems

_GAIN = 0.05  # Of a candidate whose whole title the request has, in the mixture by which candidates are ordered
_SPOKEN = 0.5  # Share of the best title from which on titles count: below it, the request is in other words
_SHORTEST = 2  # Words that every title counts as, at least: one word is soon said
_READ = 300  # Characters of a description in which its first sentence is looked for
_CACHED = 4_096  # Profiles whose title's words are kept


@dataclass(frozen=True)
class Titles(Policy):
    """By the share of its title that a request has, where the request has at least half of some candidate's title.

    Without a title it is the first sentence of the description, or the name. It is no better a match for that.
    """

    name: ClassVar = "titles"

    def shift(self, candidates: Sequence[Candidate], evidence: None, ask: Ask, scoring: Scoring) -> Sequence[Candidate]:
        asked = stems(ask.searched)
        shares = [_share(asked, _title_of(each.profile)) for each in candidates]
        if max(shares, default=0.0) < _SPOKEN:
            return candidates
        return [
            replace(each, gain=each.gain + _GAIN * share) if share else each
            for each, share in zip(candidates, shares, strict=True)
        ]


def _share(asked: Set[str], title: Set[str]) -> float:
    return len(title & asked) / max(len(title), _SHORTEST)


def _title_of(profile: Profile) -> Set[str]:
    source = profile.source
    return _words_of(source.title if source else "", source.description[:_READ] if source else "", profile.name)


@lru_cache(maxsize=_CACHED)
def _words_of(title: str, description: str, name: str) -> Set[str]:
    """The stems of the first of these that has any."""
    texts = (split_identifier(title), first_sentence(description), split_identifier(name))
    return next(filter(None, map(stems, texts)), set())
