"""Search by the synonyms of this registry, too: docs/decisions/0086."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.policies.policy import Ask, Policy
from mats.domain.search.lookups import Lookups
from mats.domain.text.variants import Groups, synonyms_of
from mats.domain.text.words import clip

_NOTED = 200  # Characters of a rewrite that a note has


@dataclass(frozen=True)
class Synonyms(Policy):
    """Adds rewrites of the request in words that operators said to mean the same."""

    name: ClassVar = "synonyms"
    groups: Callable[[], Groups]

    def read(self, ask: Ask, index: Lookups) -> tuple[Ask, None]:
        rewrites = synonyms_of(known).rewrites(ask.text) if (known := self.groups()) else ()
        if not rewrites:
            return ask, None
        notes = [f"also searched as {clip(each, _NOTED)!r}, by synonyms of this registry" for each in rewrites]
        return replace(ask, words=replace(ask.words, rewrites=rewrites), notes=(*ask.notes, *notes)), None
