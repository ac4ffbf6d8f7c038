"""Recall: the votes of remembered requests on a new one."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from mats.domain.capability.capability import Id
from mats.domain.learning.memory_rule import RULE, MemoryRule
from mats.domain.learning.remembered import Near
from mats.domain.learning.voting import Votes, crowding, shifts, vote
from mats.domain.ranking.ranking import Scale
from mats.domain.shortlist.shortlist import Candidate
from mats.domain.shortlist.trace import Trace
from mats.ports import Memory, Vector
from mats.usecases.stages import Stage, Stages, finish

_SPARE = 2
"""Times as many requests are read as may vote, since not all count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Reads the memory. `scale` is that of the ranking, for what votes add to its mixtures."""

    memory: Memory
    scale: Scale
    rule: MemoryRule = RULE

    def start(self, vector: Vector, caller: str, stages: Stages) -> Stage[Votes | None]:
        """Start reading the votes that count for a caller."""
        return stages.start("memory", lambda: vote(self._near(vector, caller), caller, self.rule))

    def _near(self, vector: Vector, caller: str) -> list[Near]:
        """The nearest requests. If one caller's crowd out the others, those of the others are read as well."""
        depth = _SPARE * self.rule.neighbours
        near = list(self.memory.nearest(vector, depth=depth))
        crowd = crowding(near, caller, self.rule)
        if crowd and len(near) == depth:
            known = {each.memory.query_id for each in near}
            others = self.memory.nearest(vector, depth=depth, without=crowd)
            near += [each for each in others if each.memory.query_id not in known]
            near.sort(key=lambda each: (-each.similarity, each.memory.query_id))
        return near

    def complete(
        self, votes: Votes | None, ids: Collection[Id], caller: str, stages: Stages, trace: Trace
    ) -> Votes | None:
        """The votes with those of these that have outcomes; None, with a fault in the trace, if that cannot be read."""
        if votes is None:
            return None
        asked = {*ids, *votes.used}
        reported = finish(
            stages.start("reported", lambda: self.memory.with_outcomes(asked, caller, without=votes.alone)), trace
        )
        return None if reported is None else votes.with_counts(reported)

    def move(self, candidates: Iterable[Candidate], votes: Votes, audiences: Collection[str]) -> list[Candidate]:
        """The candidates with what the votes add to their mixtures, and who votes for them."""
        found = list(candidates)
        mixtures = {each.profile.id: self.scale.mix(each.bm25, each.cosine, each.pairs) for each in found}
        moved = shifts({id: mixture for id, mixture in mixtures.items() if mixture is not None}, votes, self.rule)
        return [
            replace(each, shift=moved.get(id, 0.0), used_for=votes.used_for(id, audiences))
            for id, each in ((candidate.profile.id, candidate) for candidate in found)
        ]
