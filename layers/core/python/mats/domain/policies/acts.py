"""Rank what does another thing than was asked behind: who asks does not want anything changed.

A request for several entries lowers operations that return one, and the reverse: `which invoices are open` lowers
`getInvoice`. Only the paths of operations tell which they return: docs/decisions/0109.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from mats.domain.capability.capability import Kind
from mats.domain.policies.policy import Ask, Policy, Pool
from mats.domain.profile.profile import Profile, SourceText
from mats.domain.protocols.descriptors import READS
from mats.domain.search.blend import Scoring
from mats.domain.search.candidate import Candidate
from mats.domain.search.lookups import Lookups, Vector
from mats.domain.text.acts import Act, act_asked, act_named
from mats.domain.text.words import is_plural, spelled_words, split_identifier

_FREED = 5  # Places of candidates, at most, that others take: every further hit is one more profile to read
_CACHED = 4_096  # Titles and names whose verb is kept
_GETS_ONE = re.compile(r"(?:get|retrieve|show|describe|view) an? ")
_BEHIND = 0.1  # What the mixture of one that does another thing is lowered by


@dataclass(frozen=True)
class Acts(Policy):
    """Asking is not changing, and making, editing and removing differ. What is known of neither side stays as it is.

    Others take the places of those that do another thing, if there are others; none is left out for it alone.
    """

    name: ClassVar = "acts"

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> Act:
        return act_asked(ask.plain)

    def choose(self, pool: Pool, evidence: Act) -> Pool:
        if not evidence:
            return pool
        exact = pool.positions(lambda marks: marks.exact)
        other = [n for n in pool.kept if n not in exact and differs(evidence, pool.profiles[n])][-_FREED:]
        return replace(pool, kept=[n for n in pool.kept if n not in other], spare=[*pool.spare, *other])

    def shift(self, candidates: Sequence[Candidate], evidence: Act, ask: Ask, scoring: Scoring) -> Sequence[Candidate]:
        return [
            replace(c, shift=c.shift - _BEHIND, alone=c.alone - _BEHIND) if differs(evidence, c.profile) else c
            for c in candidates
        ]


def differs(asked: Act, profile: Profile) -> bool:
    """True if a capability is known to do another thing than is asked."""
    done = act_of(profile) if asked else Act.NONE
    return bool(done) and not asked & done


def act_of(profile: Profile) -> Act:
    """What a tool does: by its owner's word that it only reads, else by the verb of its title or of its name."""
    if profile.kind is not Kind.TOOL:
        return Act.NONE
    source = profile.source or SourceText()
    act = Act.READ if READS in profile.effects else _act_named(source.title, profile.name)
    return _number_given(source.spoken, profile.name) if act is Act.READ else act


def _number_given(spoken: str, name: str) -> Act:
    """The number of entries that an operation returns, by its path; `READ` if it is unknown or its name disagrees."""
    if spoken.startswith("list the "):
        return Act.SEVERAL
    return Act.ONE if _GETS_ONE.match(spoken) and not is_plural(split_identifier(name).lower()) else Act.READ


@lru_cache(maxsize=_CACHED)
def _act_named(title: str, name: str) -> Act:
    return act_named(spelled_words(title)[:1]) or act_named(split_identifier(name).lower().split())
