"""Words of a request that a registry does not have, and the nearest that it has, both as stems."""

from collections.abc import Iterable, Mapping, Sequence

from mats.domain.text.common_words import ORDINARY
from mats.domain.text.words import STOP_WORDS, may_be_foreign, spelled_words, stem

SHORTEST = 4  # Letters of a word that may be misspelt; a shorter one is near to too many
_LONG, _LONGEST = 8, 24
MOST_MISSPELT = 20  # Words of a request that are looked up
_COMMON = STOP_WORDS | ORDINARY
_ENDINGS = ("", "e", "s", "ed", "y")


def may_be_misspelt(text: str) -> list[str]:
    """The words of a request that a registry would have, were they spelled right: no names, nothing foreign."""
    plain = [word.lower() for word in text.split() if word.isalpha() and (word.islower() or text.startswith(word))]
    found = [word for word in plain if has_spelling(word) and word not in _COMMON]
    return [] if may_be_foreign(spelled_words(text)) else list(dict.fromkeys(found))[:MOST_MISSPELT]


def correct(text: str, meant: Mapping[str, str]) -> str:
    """A text with what its misspelt words mean in their places."""
    return " ".join(meant.get(word.lower(), word) for word in text.split())


def has_spelling(word: str) -> bool:
    """True if a word is of letters that may be mistaken, and of a common length."""
    return SHORTEST <= len(word) <= _LONGEST and word.isascii() and word.isalpha()


def near(word: str, stems: Iterable[str]) -> dict[str, int]:
    """Those of the stems that are near a word or its stem, with the edits: "addres", stem "addr", is near "address"."""
    asked = {word, stem(word)}
    most = 2 if len(stem(word)) >= _LONG else 1
    edits = {each: min(distance(form, each, most) for form in asked) for each in stems}
    return {each: count for each, count in edits.items() if count <= most}


def nearest(word: str, known: Mapping[str, int]) -> str:
    """The nearest of these stems with as many capabilities as have each: those with the same letters first.

    Each begins with the same letter. A longer word is another one: a pager is no page. Empty if none is near.
    """
    asked = (word, stem(word))
    edits = near(word, (each for each in known if known[each] and not any(form.startswith(each) for form in asked)))
    letters = [sorted(form) for form in asked]
    return min(edits, key=lambda each: (edits[each], sorted(each) not in letters, -known[each], each), default="")


def distance(one: str, other: str, most: int) -> int:
    """Insertions, deletions, replacements and transpositions of neighbours; more than `most` is `most` and one more."""
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return most + 1
    before: Sequence[int] = ()
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, its in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != its))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == its:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def word_of(its_stem: str) -> str:
    """A word with this stem, which is not always its own."""
    return next((its_stem + ending for ending in _ENDINGS if stem(its_stem + ending) == its_stem), its_stem)
