"""Learn from past requests: what served similar ones gains. docs/decisions/0048."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from mats.domain.capability.capability import Id
from mats.domain.learning.remembered import Near, nearest_first
from mats.domain.learning.voting import RULE, Votes, crowding, fuse_votes, shifts, vote
from mats.domain.policies.policy import Ask, Order, Policy
from mats.domain.search.blend import Scoring
from mats.domain.search.candidate import Candidate
from mats.domain.search.lookups import Lookups, Vector

_SPARE = 2  # Times as many requests are read as may vote, since not all count
_WINDOW = 60  # The first hits, of which outcomes are read


class Remembered(Protocol):
    """What this policy reads of a memory (`mats.ports.Memory`)."""

    def nearest(self, vector: Vector, *, depth: int, without: Collection[str] = ()) -> Sequence[Near]: ...
    def with_outcomes(self, ids: Collection[Id], caller: str, *, without: Collection[str] = ()) -> Mapping[Id, int]: ...


@dataclass
class _Recalled:
    """The votes on a text; those of the look, completed by `nominate`, which knows what was found."""

    votes: Votes
    caller: str


@dataclass(frozen=True)
class Memory(Policy):
    """Remembered requests vote for their capabilities: into the order of fusion, and on the mixtures."""

    name: ClassVar = "memory"
    reads: ClassVar = ("look", "nominate")
    memory: Remembered

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> _Recalled | None:
        votes = self._votes(vector, ask.caller) if vector else None
        return _Recalled(votes, ask.caller) if votes else None

    def _votes(self, vector: Vector, caller: str) -> Votes | None:
        """Votes of the nearest requests; reads again without callers that fill the list."""
        depth = _SPARE * RULE.neighbours
        near = list(self.memory.nearest(vector, depth=depth))
        if not near:
            return None
        crowd = crowding(near, caller)
        if crowd and len(near) == depth:
            known = {each.memory.query_id for each in near}
            others = self.memory.nearest(vector, depth=depth, without=crowd)
            near = nearest_first([*near, *(each for each in others if each.memory.query_id not in known)])
        return vote(near, caller)

    def nominate(self, order: Order, evidence: _Recalled | None) -> Order:
        if evidence is None:
            return order
        votes = evidence.votes.within_reach(order.ids, order.k)
        asked = {*order.ids[:_WINDOW], *votes.used}
        reported = self.memory.with_outcomes(asked, evidence.caller, without=votes.alone)
        evidence.votes = votes.with_counts(reported)
        return order.with_scores(fuse_votes(order.scores, evidence.votes))

    def shift(
        self, candidates: Sequence[Candidate], evidence: _Recalled | None, ask: Ask, scoring: Scoring
    ) -> Sequence[Candidate]:
        if evidence is None:
            return candidates
        votes, audiences = evidence.votes, ask.admitted.audiences
        mixtures = {each.id: scoring.scale.mix(each.bm25, each.cosine, each.pairs) for each in candidates}
        moved = shifts({id: mixture for id, mixture in mixtures.items() if mixture is not None}, votes)
        return [
            replace(each, shift=each.shift + moved.get(each.id, 0.0), used_for=votes.used_for(each.id, audiences))
            for each in candidates
        ]
