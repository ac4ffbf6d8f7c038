"""Search by the synonyms of this registry, too: docs/decisions/0086."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from mats.domain.policies.policy import Ask, Policy
from mats.domain.search.lookups import Lookups
from mats.domain.search.query import Filter
from mats.domain.text.variants import Groups, synonyms_of
from mats.domain.text.words import clip, query_terms

_NOTED = 200  # Characters of a rewrite that a note has


@dataclass(frozen=True)
class Synonyms(Policy):
    """Adds rewrites of the request in words that operators said to mean the same.

    Only in words of what its caller may see: another could be that of a hidden capability.
    """

    name: ClassVar = "synonyms"
    reads: ClassVar = ("read",)
    groups: Callable[[], Groups]

    def read(self, ask: Ask, index: Lookups) -> tuple[Ask, None]:
        made = synonyms_of(known).rewrites(ask.text) if (known := self.groups()) else ()
        said, visible = frozenset(query_terms(ask.text)), Filter(audiences=ask.admitted.audiences)
        added = {each: frozenset(query_terms(each)) - said for each in made}
        seen = {term for term in frozenset().union(*added.values()) if index.lexical([term], visible, depth=1)}
        rewrites = tuple(each for each in made if added[each] <= seen)
        if not rewrites:
            return ask, None
        notes = [f"also searched as {clip(each, _NOTED)!r}, by synonyms of this registry" for each in rewrites]
        return replace(ask, words=replace(ask.words, rewrites=rewrites), notes=(*ask.notes, *notes)), None
