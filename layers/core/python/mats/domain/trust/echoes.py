"""Echoes: capabilities whose text repeats a request, as that of an attacker does who expects it. docs/decisions/0035.

Near-duplicates of one pasted request are found by their text alone only until each is padded with other words. What
all of them must keep are the words of the request, and honest capabilities hold only some of these.
"""

import math
from collections.abc import Iterable
from itertools import islice

from mats.domain.profile.index_fields import searched_text
from mats.domain.profile.profile import Profile
from mats.domain.text.text import content_words, may_have_stem, stem, words

SHARE = 0.8
"""Share of a request's content words from which on a profile repeats it."""
FEWEST = 4
"""Content words; a shorter request may be a capability's own name."""
_PREFIX = 2
"""Words that share a stem share at least these first letters."""


def find_echoes(request: str, profiles: Iterable[Profile]) -> list[int]:
    """The positions of the profiles that repeat the request, in any field and order."""
    asked = set(map(stem, content_words(request)))
    if len(asked) < FEWEST:
        return []
    return [position for position, profile in enumerate(profiles) if _repeats(asked, profile)]


def _repeats(asked: set[str], profile: Profile) -> bool:
    searched = searched_text(profile)
    absent = (each for each in asked if not may_have_stem(searched.lowered, each))
    if any(islice(absent, len(asked) - math.ceil(SHARE * len(asked)), None)):  # no need to cut the text into words
        return False
    starts = tuple({each[:_PREFIX] for each in asked})
    said: set[str] = set()
    for text in searched.fields:
        said |= {stem(word) for word in set(words(text)) if word.startswith(starts)}
    return len(asked & said) >= SHARE * len(asked)
