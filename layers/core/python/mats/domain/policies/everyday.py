"""Read everyday words that the registry hardly has in the words of software, too."""

from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.policies.policy import Ask, Policy
from mats.domain.search.lookups import Lookups
from mats.domain.text.everyday import MEANT
from mats.domain.text.words import query_terms, stem

_FEW = 10  # Capabilities with a word, from which on the registry has it


@dataclass(frozen=True)
class Everyday(Policy):
    """Who asks for a room where there are channels is understood; where there are rooms, the word is left alone."""

    name: ClassVar = "everyday"
    reads: ClassVar = ("read",)

    def read(self, ask: Ask, index: Lookups) -> tuple[Ask, None]:
        if ask.foreign or ask.words.rewrites:
            return ask, None
        asked = [term for term in query_terms(ask.plain) if stem(term) in MEANT]
        rare = [term for term in asked if len(index.lexical([term], ask.admitted, depth=_FEW)) < _FEW]
        if not rare:
            return ask, None
        meant = {stem(term): MEANT[stem(term)] for term in rare}
        guessed = query_terms(" ".join((*ask.words.guessed, *(word for words in meant.values() for word in words))))
        plain = f"{ask.plain} ({', '.join(words[0] for words in meant.values())})"
        return replace(ask, plain=plain, words=replace(ask.words, guessed=guessed)), None
