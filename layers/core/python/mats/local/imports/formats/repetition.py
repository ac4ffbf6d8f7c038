"""Sentences that many operations of a document share, such as the scopes a token needs: they tell nothing of one."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Self

from mats.domain.text.plain_text import plain, sentences

_LEAST, _SHARE = 5, 100
"""A sentence is shared if this many descriptions have it, and one of so many."""
_LONGEST = 20_000
"""Characters of a description that are read; bounds the work for a document."""
_CODE = re.compile(r"`[^`]*`")


class Split(NamedTuple):
    """A description without its shared sentences, and those."""

    text: str
    shared: list[str]


@dataclass(frozen=True, slots=True)
class SharedSentences:
    """The shared sentences of a document; code in them may differ: `repo` or `admin:org`."""

    _forms: frozenset[str]

    @classmethod
    def of(cls, descriptions: Iterable[str]) -> Self:
        counts: Counter[str] = Counter()
        total = 0
        for description in descriptions:
            total += 1
            counts.update({_form(sentence) for sentence in sentences(plain(description[:_LONGEST]))})
        least = max(_LEAST, total / _SHARE)
        return cls(frozenset(form for form, count in counts.items() if count >= least))

    def split(self, description: str) -> Split:
        """The description as it is if it shares nothing, or is too long to be read."""
        every = sentences(plain(description)) if self._forms and len(description) <= _LONGEST else []
        shared = [sentence for sentence in every if _form(sentence) in self._forms]
        if not shared:
            return Split(description, [])
        return Split(" ".join(sentence for sentence in every if _form(sentence) not in self._forms), shared)


def _form(sentence: str) -> str:
    return _CODE.sub("`", sentence).casefold()
