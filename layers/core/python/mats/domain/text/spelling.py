"""The nearest of known stems for a misspelt word."""

from collections.abc import Iterable, Mapping, Sequence

from mats.domain.text.words import stem

_SHORTEST = 5  # Letters of a stem that may lack one
_ENDINGS = ("", "e", "s", "ed", "y")


def near(word: str, stems: Iterable[str]) -> list[str]:
    """Those of the stems from which a word or its stem differs by two letters exchanged, or one too many or too few.

    A letter in place of another makes another word too often: a pager is no payer.
    """
    asked = {word, stem(word)}
    return [each for each in stems if any(_is_slip(form, each) for form in asked)]


def _is_slip(one: str, other: str) -> bool:
    if len(one) == len(other):
        return sorted(one) == sorted(other) and distance(one, other, 1) == 1
    return min(len(one), len(other)) >= _SHORTEST and distance(one, other, 1) == 1


def nearest(word: str, known: Mapping[str, int]) -> str:
    """The nearest of these stems with as many capabilities as have each: those with the same letters first.

    Each begins with the same letter. A longer word is another one: a pager is no page. Empty if none is near.
    """
    asked = (word, stem(word))
    found = near(word, (each for each in known if known[each] and not any(form.startswith(each) for form in asked)))
    letters = [sorted(form) for form in asked]
    return min(found, key=lambda each: (sorted(each) not in letters, -known[each], each), default="")


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
    """A word with this stem, made of it alone: an index has words that a caller must not see."""
    made = [its_stem + ending for ending in _ENDINGS]
    made[:0] = [f"{its_stem[:-1]}y"] if its_stem.endswith("i") else []
    return next((word for word in made if stem(word) == its_stem), its_stem)
