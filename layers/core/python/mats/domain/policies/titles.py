"""Rank higher what a request calls by its title: docs/decisions/0109.

Long descriptions have most words of a request somewhere; a title is what its owner says that the thing is.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from mats.domain.policies.policy import Ask, Policy
from mats.domain.profile.profile import Profile
from mats.domain.search.blend import Scoring
from mats.domain.search.candidate import Candidate
from mats.domain.text.words import sentences, split_identifier, stems

_GAIN = 0.05  # What a title gains of which the request has every word, in the mixture by which candidates are ordered
_SPOKEN = 0.5  # Share of a title from which on the request is in the words of titles, and not in others
_CACHED = 4_096  # Titles whose words are kept


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
    return len(title & asked) / len(title) if title else 0.0


def _title_of(profile: Profile) -> Set[str]:
    source = profile.source
    return _words_of(source.title if source else "", source.description if source else "", profile.name)


@lru_cache(maxsize=_CACHED)
def _words_of(title: str, description: str, name: str) -> Set[str]:
    return stems(title or next(iter(sentences(description)), "") or split_identifier(name))
