"""Words that mean the same in one registry, as its operators say: docs/decisions/0086."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import TypeAlias

from mats.domain.errors import Fault, RequestInvalid
from mats.domain.text.words import STOP_WORDS, TOKEN, clean, index_terms

Groups: TypeAlias = tuple[tuple[str, ...], ...]  # Words or phrases that mean the same, in order
MOST_GROUPS, _MOST_WORDS, _LONGEST = 1_000, 20, 60
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
        tokens = list(TOKEN.finditer(text)) if self._by_first else []
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


def parse_groups(lines: Iterable[str]) -> Groups:
    """Groups of a plain file: one on a line, words separated by commas; `#` begins a comment.

    Groups with a word in common are one.

    Raises:
        RequestInvalid: a word is too long or says nothing, or a line has one only; or there are too many.
    """
    groups: Groups = ()
    for number, line in enumerate(lines, start=1):
        listed = [clean(word) for word in line.partition("#")[0].split(",")]
        if any(listed):
            groups = with_group(groups, listed, field=f"line {number}")
    return groups


def with_group(groups: Groups, added: Sequence[str], *, field: str = "words") -> Groups:
    """The groups with one more, merged with those that have a word of it. Raises as `parse_groups`."""
    for word in added:
        if len(word) > _LONGEST or not _terms(word) or set(TOKEN.findall(word.lower())) <= STOP_WORDS:
            message = f"{word[:60]!r} must be at most {_LONGEST} characters with a word that is searched, so no 'it'"
            raise RequestInvalid([Fault(field, message)])
    asked = {tuple(_terms(word)) for word in added}
    alike = [group for group in groups if not asked.isdisjoint(tuple(_terms(word)) for word in group)]
    merged = {tuple(_terms(word)): word for group in (added, *alike) for word in group}
    if not 1 < len(merged) <= _MOST_WORDS:
        raise RequestInvalid([Fault(field, f"a group must have 2 to {_MOST_WORDS} different words")])
    changed = tuple(sorted((*(group for group in groups if group not in alike), tuple(sorted(merged.values())))))
    if len(changed) > MOST_GROUPS:
        raise RequestInvalid([Fault(field, f"at most {MOST_GROUPS:,} groups are kept: remove some first")])
    return changed


def without_word(groups: Groups, word: str) -> Groups:
    """The groups without a word; one that would have a single word left is gone."""
    left = (tuple(each for each in group if _terms(each) != _terms(word)) for group in groups)
    return tuple(group for group in left if len(group) > 1)
