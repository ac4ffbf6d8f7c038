"""Learn from past requests: what served similar ones gains. docs/decisions/0048."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from mats.domain.capability.capability import Id
from mats.domain.learning.remembered import Near, nearest_first
from mats.domain.learning.voting import RULE, Votes, crowding, fuse_votes, limit_rises, shifts, vote
from mats.domain.policies.policy import Ask, Order, Policy
from mats.domain.profile.profile import Profile
from mats.domain.search.blend import Scoring, best_relevance, blend
from mats.domain.search.candidate import Candidate
from mats.domain.search.lookups import Lookups, Vector
from mats.domain.search.shortlist import Ranked
from mats.domain.search.verdict import Verdict

_SPARE = 2  # Times as many requests are read as may vote, since not all count
_WINDOW = 60  # The first hits, of which outcomes are read


class Remembered(Protocol):
    """What this policy reads of a memory (`mats.ports.Memory`)."""

    def nearest(self, vector: Vector, *, depth: int, without: Collection[str] = ()) -> Sequence[Near]: ...
    def with_outcomes(self, ids: Collection[Id], caller: str, *, without: Collection[str] = ()) -> Mapping[Id, int]: ...


@dataclass
class _Recalled:
    """The requests recalled for a text, and their votes; `nominate`, which knows what was found, completes them."""

    near: Sequence[Near]
    caller: str
    votes: Votes
    own: Votes | None  # Those of the caller itself, and what operators confirmed or taught
    found: Order | None = None
    outcomes: Mapping[Id, int] = field(default_factory=dict)
    """How many of the caller's own or confirmed requests used each capability with outcomes."""
    beyond: Mapping[Id, int] = field(default_factory=dict)
    """Candidates by the votes of others alone, with how many places behind the last candidate each was found."""

    @classmethod
    def of(cls, near: Sequence[Near], caller: str) -> "_Recalled | None":
        sure = [each for each in near if each.memory.confirmed or each.memory.caller == caller]
        votes = vote(near, caller)
        return cls(near, caller, votes, vote(sure, caller)) if votes else None

    def complete(self, found: Order, outcomes: Mapping[Id, int]) -> None:
        self.found, self.outcomes = found, outcomes
        self.votes = self.votes.within_reach(found.ids, found.k).with_counts(outcomes)
        self.own = self.own and self.own.with_counts({id: count for id, count in outcomes.items() if count})

    def awake(self, profiles: Mapping[Id, Profile]) -> "_Recalled | None":
        """The same by those votes alone that are on the present texts of these profiles; None if none is."""
        near = [each.awake(profiles) for each in self.near]
        if near == list(self.near):
            return self
        awake = _Recalled.of(near, self.caller)
        if awake and self.found:
            awake.complete(self.found, self.outcomes)
            awake.beyond = self.beyond
        return awake


@dataclass(frozen=True)
class Memory(Policy):
    """Remembered requests vote for their capabilities: into the order of fusion, and on the mixtures."""

    name: ClassVar = "memory"
    reads: ClassVar = ("look", "nominate")
    memory: Remembered

    def look(self, ask: Ask, index: Lookups, vector: Vector | None, evidence: None) -> _Recalled | None:
        return _Recalled.of(self._near(vector, ask.caller), ask.caller) if vector else None

    def _near(self, vector: Vector, caller: str) -> Sequence[Near]:
        """The nearest requests; reads again without callers that fill the list."""
        depth = _SPARE * RULE.neighbours
        near = list(self.memory.nearest(vector, depth=depth))
        crowd = crowding(near, caller)
        if crowd and len(near) == depth:
            known = {each.memory.query_id for each in near}
            others = self.memory.nearest(vector, depth=depth, without=crowd)
            near = nearest_first([*near, *(each for each in others if each.memory.query_id not in known)])
        return near

    def nominate(self, order: Order, evidence: _Recalled | None) -> Order:
        if evidence is None:
            return order
        asked = {*order.ids[:_WINDOW], *evidence.votes.within_reach(order.ids, order.k).used}
        evidence.complete(order, self.memory.with_outcomes(asked, evidence.caller, without=evidence.votes.alone))
        after = order.with_scores(fuse_votes(order.scores, evidence.votes))
        found = order.with_scores(fuse_votes(order.scores, evidence.own)) if evidence.own else order
        places = {id: place for place, id in enumerate(found.ids)}
        evidence.beyond = {id: n for id in after.ids[: order.k] if (n := places.get(id, len(places)) + 1 - order.k) > 0}
        return after

    def shift(
        self, candidates: Sequence[Candidate], evidence: _Recalled | None, ask: Ask, scoring: Scoring
    ) -> Sequence[Candidate]:
        recalled = evidence and evidence.awake({each.id: each.profile for each in candidates})
        if not recalled:
            return candidates
        votes, audiences = recalled.votes, ask.admitted.audiences
        mixed = {each.id: scoring.scale.mix(each.bm25, each.cosine, each.pairs) for each in candidates}
        mixtures = {id: mixture for id, mixture in mixed.items() if mixture is not None}
        moved, alone = shifts(mixtures, votes), shifts(mixtures, recalled.own) if recalled.own else {}
        return [
            replace(
                each,
                shift=each.shift + moved.get(each.id, 0.0),
                alone=-math.inf if each.id in recalled.beyond else each.alone + alone.get(each.id, 0.0),
                rise=votes.rise_of(each.id) - recalled.beyond.get(each.id, 0),
                used_for=votes.used_for(each.id, audiences),
            )
            for each in candidates
        ]

    def arrange(self, ranked: Ranked) -> Ranked:
        """What only others used rises as far as their number allows, past no match; for `none`, not at all."""
        rises = {each.id: each.candidate.rise for each in ranked.results}
        if min(rises.values(), default=math.inf) == math.inf:
            return ranked
        candidates = [replace(each.candidate, shift=each.candidate.alone) for each in ranked.results]
        before = blend(candidates, ranked.opinion, ranked.scoring)
        if ranked.thresholds.verdict(best_relevance(before)) is Verdict.NONE:
            own = {each.id: each.candidate for each in ranked.results}
            return ranked.with_results(replace(each, candidate=own[each.id]) for each in before)
        matches = frozenset(each.id for each in before if each.relevance >= ranked.thresholds.match)
        was, by_id = {each.id: place for place, each in enumerate(before)}, {each.id: each for each in ranked.results}
        order = limit_rises(list(was), list(by_id), rises, matches)
        moved = {id: place < was[id] or by_id[id].candidate.alone > 0 for place, id in enumerate(order)}
        return ranked.with_results(replace(by_id[id], moved=moved[id]) for id in order)
