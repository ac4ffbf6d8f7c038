"""Whether an encoder's vocabulary reads a query, judged by the word pieces it is cut into.

Measured with all-MiniLM-L6-v2: of 36 queries in 17 other languages 31 are recognised, and of the 6,315 queries of the
judged sets five are marked, of which two are English and quote a Japanese sentence: docs/decisions/0043.
"""

from collections.abc import Collection, Sequence

from mats.domain.text.words import STOP_WORDS

_SPELLED = 0.6
"""Share of pieces that are unknown or one letter of another script from which on a text is spelled, not read."""
_SPLIT, _SPLIT_BESIDE = 1.5, 1.15
"""Pieces per word from which on it is not English: beside letters that English lacks, and beside function words of
another language."""
_IN_OTHER_LANGUAGES = frozenset(
    "a i in no do me is was an as at be he on or so will all more has dare can just man im ve ll re don".split()
)
_ENGLISH = STOP_WORDS - _IN_OTHER_LANGUAGES
_FOREIGN = frozenset(
    (
        "der das dem den des ist und ein eine einen einem einer im ins zum zur für fuer mit mein meine meinen "
        "nicht wie wo bitte ich wir alle el los las una del con para por que qué mi mis como cómo dónde une le "
        "les du au aux est et mon mes dans pour avec quel quelle sur il lo gli che di per mio mia della uma um os "
        "dos das meu minha qual é een het voor aan mijn wat och för att"
    ).split()
)
"""Frequent function words of German, Spanish, French, Italian, Portuguese, Dutch and Swedish."""


def is_readable(words: Sequence[str], pieces: Sequence[str]) -> bool:
    """Whether a vocabulary reads a text.

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
    if not _ENGLISH.isdisjoint(spoken):
        return True
    split = len(letters) / len(spoken)
    foreign = split >= _SPLIT_BESIDE and not _FOREIGN.isdisjoint(spoken)
    return not foreign and (split < _SPLIT or all(map(str.isascii, spoken)))


def may_be_foreign(words: Collection[str]) -> bool:
    """Whether words in lower case are without function words of English, and some are of another language or script."""
    return _ENGLISH.isdisjoint(words) and (not _FOREIGN.isdisjoint(words) or not all(map(str.isascii, words)))
