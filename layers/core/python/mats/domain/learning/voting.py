"""Votes of remembered requests for capabilities. docs/decisions/0048.

Pure functions: which of the nearest remembered requests count for a caller, and how their votes move candidates.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.learning.remembered import Near, Remembered
from mats.domain.search.candidate import UsedFor


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRule:
    """The constants of the memory, one set for all kinds and registries: docs/decisions/0048."""

    neighbours: int = 20  # Remembered requests that vote
    most_of_one: int = 5  # Votes of one other caller among them
    floor: float = 0.3  # The similarity below which a remembered request does not vote
    taught: float = 0.7  # The same of what an operator taught
    tau: float = 0.09  # By how much less similar a request has 1 / e of the vote
    even: float = 0.49
    """Similarity of the nearest one that says nothing about whether its capabilities are asked for again."""
    spread: float = 0.12  # By how much more similar the odds of that are e times as high
    most_repeated: float = 8.0
    """Bound of the odds that a request asks for what was asked for before (`Votes.repeat_odds`)."""
    prior: float = 4.0  # The weight of the first stage beside the votes, in votes, at `even`
    unseen: float = 0.08
    """Least share of the first stage's probability that a capability with outcomes is right, in [0, 1)."""
    temperature: float = 0.03  # Difference of two mixtures that makes one candidate e times as probable as another
    passed: float = 0.5  # What being passed over counts, in (0, 1); being used counts 1
    fused: float = 1.0  # Weight of the votes in the fusion that chooses candidates
    elsewhere: float = 0.13  # What a capability loses there that was used, but for no such request
    near: float = 0.5  # Similarity up to which votes lift no mixture, unless such requests ask for the same again
    lift: float = 2.0  # The most that they lift one, for each unit of similarity above that
    places: int = 2
    """How far each caller beside a first one lets a capability rise, if the asking caller did not use it."""


RULE = MemoryRule()


_MOST_TEXTS = 3
_LEAST = 1e-12  # In place of a probability of 0, which has no logarithm


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """The votes on a request: sums of weights by capability, and of all that voted."""

    nearest: float
    weight: float
    used: Mapping[Id, float]
    similarity: Mapping[Id, float]  # Of the nearest request that votes for each
    passed_over: Mapping[Id, float]
    near: Sequence[Near]
    reported: Set[Id] = frozenset()  # The capabilities with an outcome that counts for the caller, on whatever request
    certain: Set[Id] = frozenset()  # Those of them that the caller itself used, or an operator confirmed
    rises: Mapping[Id, int] = field(default_factory=dict)
    """By how many places a capability may rise that others alone used for such a request."""
    claimed: Set[Id] = frozenset()  # Used for such a request, but with hardly any of the votes, and by others only
    alone: Set[str] = frozenset()  # Callers who say so, and whom nobody confirms
    sure: Sequence[Set[Id]] = ()
    """The capabilities that each of the caller's own and of the confirmed requests among them used."""
    repeated: Set[Id] = frozenset()
    """The capabilities that at least two requests of that sort used, on whatever request."""

    @property
    def repeat_odds(self) -> float:
        """The odds that a request like these asks for what one of the caller's own or confirmed requests used.

        Good-Turing, over the neighbourhood: the next one asks for something new as often as these asked for what no
        other one asked for. 1 if there are none.
        """
        once = sum(self.repeated.isdisjoint(used) for used in self.sure)
        return (len(self.sure) - once + 0.5) / (once + 0.5)

    def rise_of(self, id: Id) -> float:
        """By how many places others may lift it; no bound if they say nothing, or the caller or an operator used it."""
        sure = id in self.used and id not in self.rises
        return math.inf if sure or not self.rises else self.rises.get(id, 0)

    @property
    def with_outcomes(self) -> Set[Id]:
        """The capabilities with outcomes that count."""
        return self.reported | (self.used.keys() - self.claimed)

    def with_counts(self, outcomes: Mapping[Id, int]) -> "Votes":
        """These, with how many of the caller's own or confirmed requests used each capability with outcomes."""
        sure, repeated = (frozenset(id for id, count in outcomes.items() if count >= least) for least in (1, 2))
        return replace(self, reported=frozenset(outcomes), certain=sure, repeated=repeated)

    def within_reach(self, found: Sequence[Id], k: int) -> "Votes":
        """The votes without capabilities that only other callers used and that rank low or were not retrieved."""
        places = {id: place for place, id in enumerate(found)}
        far = {id for id, rise in self.rises.items() if places.get(id, math.inf) >= k + rise}
        return replace(self, used={id: votes for id, votes in self.used.items() if id not in far})

    def used_for(self, id: Id, audiences: Collection[str]) -> UsedFor | None:
        """Who votes for a capability; texts only of callers whose audiences the reader has, too."""
        voters = [each for each in self.near if id in each.memory.used] if id in self.used else []
        if not voters:
            return None
        texts = dict.fromkeys(
            each.memory.text for each in voters if each.memory.text and each.memory.audiences.issubset(audiences)
        )
        return UsedFor(
            requests=len(voters),
            callers=len({each.memory.caller for each in voters}),
            similarity=voters[0].similarity,
            texts=tuple(texts)[:_MOST_TEXTS],
        )


def crowding(near: Sequence[Near], caller: str) -> frozenset[str]:
    """The other callers with more remembered requests among these than may vote."""
    counts = Counter(each.memory.caller for each in near if each.memory.caller not in (caller, _SURE))
    return frozenset(other for other, count in counts.items() if count > RULE.most_of_one)


def vote(near: Sequence[Near], caller: str) -> Votes | None:
    """The votes of remembered requests, nearest first, that count for a caller; None if there are none.

    Its own requests count in full and at once, and so do those that an operator confirmed. Of others, none has more
    weight for or against a capability than a second one beside it: alone, it counts nothing. A request that counts less
    is as if it were less similar. What an operator taught comes before them, and weighs as much as all of them can.
    """
    heard, rule = _similar_enough(near, caller), RULE
    weights = [math.exp((each.similarity - near[0].similarity) / rule.tau) for each in heard]
    for_ids = [_credit(each.memory, each.memory.used, caller) for each in heard]
    against = [_credit(each.memory, each.memory.passed_over, caller) for each in heard]
    used, passed = _shares(for_ids, weights), _shares(against, weights)
    counted = [max((used[sayer, id] for sayer, id in credits), default=0.0) for credits in for_ids]
    reach = [
        (each.similarity + rule.tau * math.log(share), position)
        for position, (each, share) in enumerate(zip(heard, counted, strict=True))
        if share >= _NEAR_EACH_OTHER  # else it would take the place of one that counts
    ]
    taught = [each.memory.is_lesson for each in heard]
    voters = sorted(
        (pair for pair in reach if pair[0] >= rule.floor), key=lambda pair: (not taught[pair[1]], -pair[0], pair[1])
    )
    voters = voters[: rule.neighbours]
    if not voters:
        return None
    nearest, positions = max(similarity for similarity, _ in voters), [position for _, position in voters]
    scale = math.exp((near[0].similarity - nearest) / rule.tau)
    times = [rule.neighbours if one else 1 for one in taught]
    weight = math.fsum(times[at] * math.exp((similarity - nearest) / rule.tau) for similarity, at in voters)
    sums = _sums([(for_ids[at], times[at] * weights[at] * scale) for at in positions], used)
    callers: dict[Id, set[str]] = {}
    for sayer, id in (credit for at in positions for credit in for_ids[at] if used[credit]):
        callers.setdefault(id, set()).add(sayer)
    return Votes(
        nearest=nearest,
        weight=weight,
        used=sums,
        similarity={id: heard[at].similarity for at in sorted(positions, reverse=True) for _, id in for_ids[at]},
        passed_over=_sums([(against[at], weights[at] * scale) for at in positions], passed),
        near=[heard[at] for at in sorted(positions)],
        sure=[heard[at].memory.used for at in positions if not taught[at] and _SURE in dict(for_ids[at])],
        rises={id: rule.places * (len(who) - 1) for id, who in callers.items() if _SURE not in who},
        claimed=frozenset(id for id, sum in sums.items() if sum < _HARDLY * weight and (_SURE, id) not in used),
        alone=frozenset(sayer for (sayer, _), share in used.items() if share < _NEAR_EACH_OTHER),
    )


_SURE = ""  # In place of a caller: the one who asks, or an operator, whose lessons are of this one
_NEAR_EACH_OTHER = 0.1  # Least ratio of the weights of two callers who confirm each other
_HARDLY = 0.02  # Share of all votes below which a capability has hardly any
_Credits: TypeAlias = Sequence[tuple[str, Id]]  # Who says it, and of which capability


def _similar_enough(near: Sequence[Near], caller: str) -> list[Near]:
    """Those that may vote: of each other caller the nearest few."""
    counts: Counter[str] = Counter()
    heard: list[Near] = []
    for each in near:
        other, floor = each.memory.caller, RULE.taught if each.memory.is_lesson else RULE.floor
        counts[other] += 1
        if each.similarity >= floor and (other == caller or counts[other] <= RULE.most_of_one):
            heard.append(each)
    return heard


def _credit(memory: Remembered, ids: Iterable[Id], caller: str) -> _Credits:
    sayer = _SURE if memory.confirmed or memory.caller == caller else memory.caller
    return [(sayer, id) for id in sorted(ids)]


def _shares(said: Sequence[_Credits], weights: Sequence[float]) -> Mapping[tuple[str, Id], float]:
    """The share, in [0, 1], of what each says of a capability that counts."""
    totals: dict[Id, dict[str, float]] = {}
    for credits, weight in zip(said, weights, strict=True):
        for sayer, id in credits:
            by_sayer = totals.setdefault(id, {})
            by_sayer[sayer] = by_sayer.get(sayer, 0.0) + weight
    shares: dict[tuple[str, Id], float] = {}
    for id, by_sayer in totals.items():
        # The most that one may say: as much as the second of two totals that are near each other
        falling = pairwise(sorted(by_sayer.values(), reverse=True))
        most = next((less for more, less in falling if less >= _NEAR_EACH_OTHER * more), 0.0)
        for sayer, total in by_sayer.items():
            shares[sayer, id] = 1.0 if sayer == _SURE else min(total, most) / total
    return shares


def _sums(said: Sequence[tuple[_Credits, float]], shares: Mapping[tuple[str, Id], float]) -> dict[Id, float]:
    """The votes for and against each capability."""
    sums: dict[Id, float] = {}
    for credits, weight in said:
        for sayer, id in credits:
            if counted := weight * shares[sayer, id]:
                sums[id] = sums.get(id, 0.0) + counted
    return sums


def fuse_votes(fused: Mapping[Id, float], votes: Votes) -> dict[Id, float]:
    """First-stage scores with the votes added; capabilities that only the memory names are added.

    What was used for other requests loses: by the caller's own word or an operator's, since praise by others, for what
    it is not asked for here, would put it out of the candidates.
    """
    scores = dict(fused)
    for id in votes.certain - votes.used.keys():
        if id in scores:
            scores[id] -= RULE.elsewhere
    for id, used in votes.used.items():
        scores[id] = scores.get(id, 0.0) + RULE.fused * (used / votes.weight)
    return scores


def shifts(mixtures: Mapping[Id, float], votes: Votes) -> dict[Id, float]:
    """The change of the mixture of each candidate by the votes; none if they are for none of the candidates.

    Mixtures are read as probabilities that sum to 1. A capability with outcomes takes what the votes give it. One that
    has never been reported on is unknown, not wrong: it keeps its share of what is left, and only if it was shown and
    passed over for such a request, less. How much is left depends on the similarity of the nearest request, on how
    often such requests ask for what was asked for before, and on how probable the first stage finds the capabilities
    with outcomes, of which the votes take nothing. Unless such requests do ask for the same again, votes lift only what
    they are near to.
    """
    known, rule = votes.with_outcomes & mixtures.keys(), RULE
    if known.isdisjoint(votes.used):
        return {}
    before = _probabilities(mixtures, rule.temperature)
    familiar = sum(before[id] for id in known)
    evidence = math.exp((votes.nearest - rule.even) / rule.spread)
    again = min(rule.most_repeated, max(1 / rule.most_repeated, votes.repeat_odds))
    prior_odds = max(1.0, evidence, again) * math.sqrt(min(1.0, again))
    odds = (familiar + rule.unseen) / (1 - familiar + rule.unseen) * prior_odds
    repeated = max(min(familiar, 1 - _LEAST), odds / (1 + odds))  # a use makes what nobody used no more probable
    prior = rule.prior / evidence
    moved: dict[Id, float] = {}
    for id, share in before.items():
        if id in known:
            voted = votes.used.get(id, 0.0) + prior * share / max(familiar, _LEAST)
            after = repeated * voted / (votes.weight + prior)
            ratio = max(after, _LEAST) / max(share, _LEAST)
        else:
            against = votes.passed_over.get(id, 0.0) / (votes.weight + prior)
            ratio = (1 - repeated) * (1 - rule.passed * against) / max(1 - familiar, _LEAST)
        moved[id] = rule.temperature * math.log(ratio)
        if again <= 1 and id in votes.used:
            near = votes.similarity.get(id, votes.nearest)
            moved[id] = min(moved[id], rule.lift * max(0.0, near - rule.near))
    return moved


def limit_rises(
    before: Sequence[Id], after: Sequence[Id], rises: Mapping[Id, float], matches: Set[Id] = frozenset()
) -> list[Id]:
    """The order after the votes of others, in which each id rises by at most so many places, above no match.

    `before` is the order without these votes, with the same ids, and `matches` are those of it that no other passes.
    """
    places = {id: place for place, id in enumerate(before)}
    waiting, order = dict.fromkeys(after), list[Id]()

    def may_follow(id: Id) -> bool:
        held = any(places[match] < places[id] for match in matches & waiting.keys())
        return rises[id] == math.inf or (len(order) >= places[id] - rises[id] and not held)

    while waiting:
        order.append(next((id for id in waiting if may_follow(id)), min(waiting, key=places.__getitem__)))
        del waiting[order[-1]]
    return order


def _probabilities(mixtures: Mapping[Id, float], temperature: float) -> dict[Id, float]:
    """Softmax."""
    top = max(mixtures.values())
    odds = {id: math.exp((mixture - top) / temperature) for id, mixture in mixtures.items()}
    total = sum(odds.values())
    return {id: each / total for id, each in odds.items()}
