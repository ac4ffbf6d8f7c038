"""Other words for those of a request.

Of what a registry does not have the nearest that it has, both as stems; and synonyms, as its operators say
(docs/decisions/0086).
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import TypeAlias

from mats.domain.errors import Fault, RequestInvalid
from mats.domain.text.common_words import ORDINARY
from mats.domain.text.words import (
    STOP_WORDS,
    TOKEN,
    has_spelling,
    index_terms,
    may_be_foreign,
    spelled_words,
    stem,
)

_SHORTEST = 5  # Letters of a stem that may lack one
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
    """A word with this stem, which is not always its own."""
    return next((its_stem + ending for ending in _ENDINGS if stem(its_stem + ending) == its_stem), its_stem)


Groups: TypeAlias = tuple[tuple[str, ...], ...]  # Words or phrases that mean the same, in order
_MOST_GROUPS, _MOST_WORDS, _LONGEST_PHRASE = 1_000, 20, 60
_MOST_BYTES = 350_000  # Of all groups, with what DynamoDB adds: they are one item, of at most 409,600
_MOST_REWRITES = 3


class Synonyms:
    """Rewrites requests; immutable."""

    def __init__(self, groups: Groups) -> None:
        self._by_first: dict[str, list[tuple[list[str], list[str]]]] = {}
        for group in groups:
            for word in group:
                terms, others = _terms(word), [other for other in group if other != word]
                self._by_first.setdefault(terms[0], []).append((terms, others))
        for found in self._by_first.values():
            found.sort(key=lambda each: -len(each[0]))  # of several phrases at one place, the longest

    def rewrites(self, text: str) -> tuple[str, ...]:
        """A few texts that say the same in other words of the registry; none if no word of it has synonyms."""
        tokens = list(TOKEN.finditer(text))
        terms, segments, at, end = [_terms(token[0])[0] for token in tokens], list[list[str]](), 0, 0
        while at < len(tokens):
            found = self._by_first.get(terms[at], ())
            phrase, others = next((each for each in found if terms[at : at + len(each[0])] == each[0]), ([], []))
            if phrase:
                start, before, end = tokens[at].start(), end, tokens[at + len(phrase) - 1].end()
                segments += [text[before:start]], [text[start:end], *others]
            at += len(phrase) or 1
        made = product(*segments, [text[end:]])
        return tuple(map("".join, islice(made, 1, 1 + _MOST_REWRITES)))


def _terms(text: str) -> list[str]:
    """Folded and stemmed words; of Chinese, Japanese and Korean text the letters."""
    return ["".join(index_terms(match[0])) for match in TOKEN.finditer(text)]


synonyms_of = lru_cache(maxsize=4)(Synonyms)  # The synonyms of these groups, made once


def with_group(groups: Groups, added: Sequence[str]) -> Groups:
    """The groups with one more, merged with those that have a word of it.

    Raises RequestInvalid: a word is too long or says nothing, or the group has one only; or there are too many.
    """
    for word in added:
        if len(word) > _LONGEST_PHRASE or not _terms(word) or set(TOKEN.findall(word.lower())) <= STOP_WORDS:
            message = (
                f"{word[:60]!r} must be at most {_LONGEST_PHRASE} characters, with a word other than 'a', 'it' or 'the'"
            )
            raise RequestInvalid([Fault("words", message)])
    asked = {tuple(_terms(word)) for word in added}
    alike = [group for group in groups if not asked.isdisjoint(tuple(_terms(word)) for word in group)]
    merged = {tuple(_terms(word)): word for group in (added, *alike) for word in group}
    if not 1 < len(merged) <= _MOST_WORDS:
        raise RequestInvalid([Fault("words", f"a group must have 2 to {_MOST_WORDS} different words")])
    changed = tuple(sorted((*(group for group in groups if group not in alike), tuple(sorted(merged.values())))))
    if len(changed) > _MOST_GROUPS or sum(map(_bytes, changed)) > _MOST_BYTES:
        most = f"{_MOST_GROUPS:,} groups with {_MOST_BYTES:,} bytes"
        raise RequestInvalid([Fault("words", f"at most {most} are kept: remove some first")])
    return changed


def _bytes(group: Sequence[str]) -> int:
    return sum(len(word.encode()) + 1 for word in group) + 4


def without_word(groups: Groups, word: str) -> Groups:
    """The groups without a word; one that would have a single word left is gone."""
    left = (tuple(each for each in group if _terms(each) != _terms(word)) for group in groups)
    return tuple(group for group in left if len(group) > 1)
