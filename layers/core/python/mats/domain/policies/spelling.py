"""Read misspelt words as the nearest words that the registry has: docs/decisions/0083."""

from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.policies.policy import Ask, Policy
from mats.domain.search.lookups import Lookups
from mats.domain.text.variants import correct, may_be_misspelt
from mats.domain.text.words import query_terms


@dataclass(frozen=True)
class Spelling(Policy):
    """Corrects words that the registry does not have; a word with synonyms is none of them."""

    name: ClassVar = "spelling"
    reads: ClassVar = ("read",)

    def read(self, ask: Ask, index: Lookups) -> tuple[Ask, None]:
        if ask.foreign or ask.words.rewrites:
            return ask, None
        words = may_be_misspelt(ask.searched)
        meant = index.spellings(words, ask.admitted) if words else {}
        if not meant:
            return ask, None
        guessed = query_terms(" ".join(meant.values()))
        notes = [f"reads {word} as {near}" for word, near in meant.items()]
        plain = correct(ask.plain, meant)
        return replace(ask, words=replace(ask.words, guessed=guessed), plain=plain, notes=(*ask.notes, *notes)), None
