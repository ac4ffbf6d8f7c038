"""Recognition of queries that an encoder's vocabulary reads, judged by the word pieces it is cut into.

Measured with all-MiniLM-L6-v2: docs/decisions/0084.
"""

import re
from collections.abc import Collection, Sequence

from mats.domain.text.words import ENGLISH_WORDS, FOREIGN_WORDS

_SPELLED = 0.6
"""Share of pieces that are unknown or one letter of another script from which on a text is spelled, not read."""
_SPLIT, _SPLIT_BESIDE = 1.5, 1.15
"""Pieces per word from which on it is not English: beside letters that English lacks, and beside function words of
another language."""
_UNLIKE_ENGLISH = re.compile(
    r".{4,}(?:en|os|as)|.{3,}(?:e[rl]n|ung|(?<!w)ar|(?<!w)are|ere|ado|ada|ivo|iva|mente|heid|eiro)"
)
"""Words by the endings of verbs and nouns of these languages that are rare in English."""


def is_readable(words: Sequence[str], pieces: Sequence[str]) -> bool:
    """True if a vocabulary reads a text.

    Args:
        words: Its words, in lower case.
        pieces: Its pieces in the vocabulary, without marks of their place; an unknown one is empty.
    """
    spoken = [word for word in words if word.isalpha()]
    letters = [piece for piece in pieces if not piece or piece.isalpha()]
    if not spoken or not letters:
        return True
    if sum(not piece or (len(piece) == 1 and not piece.isascii()) for piece in letters) >= _SPELLED * len(letters):
        return False
    if not ENGLISH_WORDS.isdisjoint(spoken):
        return True
    split = len(letters) / len(spoken)
    foreign = split >= _SPLIT_BESIDE and not FOREIGN_WORDS.isdisjoint(spoken)
    endings = sum(_UNLIKE_ENGLISH.fullmatch(word) is not None for word in spoken)
    foreign = foreign or (len(spoken) > 1 and endings >= len(spoken) / 3 and set(spoken).isdisjoint(letters))
    return not foreign and (split < _SPLIT or all(map(str.isascii, spoken)))


def may_be_foreign(words: Collection[str]) -> bool:
    """True if words in lower case are without function words of English, and some are of another language or script."""
    return ENGLISH_WORDS.isdisjoint(words) and (not FOREIGN_WORDS.isdisjoint(words) or not all(map(str.isascii, words)))
