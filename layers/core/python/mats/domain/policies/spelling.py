"""Read misspelt words as the nearest words that the registry has: docs/decisions/0083."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.policies.policy import Ask, Policy
from mats.domain.search.lookups import Lookups
from mats.domain.text.common_words import ORDINARY
from mats.domain.text.words import STOP_WORDS, has_spelling, may_be_foreign, query_terms, spelled_words

_MOST = 20  # Words of a request that are looked up
_COMMON = STOP_WORDS | ORDINARY


@dataclass(frozen=True)
class Spelling(Policy):
    """Corrects words that the registry does not have."""

    name: ClassVar = "spelling"
    reads: ClassVar = ("read",)

    def read(self, ask: Ask, index: Lookups) -> tuple[Ask, None]:
        words = [] if ask.foreign else may_be_misspelt(ask.searched)
        meant = index.spellings(words, ask.admitted) if words else {}
        if not meant:
            return ask, None
        guessed = query_terms(" ".join(meant.values()))
        notes = [f"reads {word} as {near}" for word, near in meant.items()]
        return replace(ask, guessed=guessed, plain=_correct(ask.plain, meant), notes=(*ask.notes, *notes)), None


def may_be_misspelt(text: str) -> list[str]:
    """The words of a request that a registry would have, were they spelled right: no names, nothing foreign."""
    plain = [word.lower() for word in text.split() if word.isalpha() and (word.islower() or text.startswith(word))]
    found = [word for word in plain if has_spelling(word) and word not in _COMMON]
    return [] if may_be_foreign(spelled_words(text)) else list(dict.fromkeys(found))[:_MOST]


def _correct(text: str, meant: Mapping[str, str]) -> str:
    """A text with what its misspelt words mean in their places."""
    return " ".join(meant.get(word.lower(), word) for word in text.split())
