"""Memory: requests that ended well vote for the capabilities that served them. docs/decisions/0048.

Pure functions: which of the nearest remembered requests count for a caller, and how their votes move candidates.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from mats.domain.capability import Id
from mats.domain.outcome import Event, ReportedAnswer, effective_event

_MOST_TEXTS = 3
_LEAST = 1e-12
"""In place of a probability of 0, which has no logarithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A request that ended in success.

    `passed_over` were shown before the last of the `used`, or reported as failed or wrong. `confirmed`: by an operator.
    `text` is empty if queries are not kept as text; `vector` is packed (`mats.domain.receipt`), and empty where only
    the votes are read.
    """

    query_id: str
    text: str
    caller: str
    audiences: frozenset[str]
    at: str
    used: frozenset[Id]
    passed_over: frozenset[Id] = frozenset()
    confirmed: bool = False
    encoder: str = ""
    vector: bytes = b""


class Near(NamedTuple):
    """A remembered request with the cosine of its vector and that of a new one."""

    similarity: float
    memory: Remembered


def remember(answer: ReportedAnswer) -> Remembered | None:
    """What an answer with reports leaves in the memory; None without success or vector."""
    receipt = answer.receipt
    ended = {id: effective_event(events) for id, events in answer.events.items()}
    used = frozenset(id for id, event in ended.items() if event is Event.SUCCEEDED)
    if not used or not receipt.vector:
        return None
    chosen = {id for id, event in ended.items() if event in (Event.SUCCEEDED, Event.SELECTED)}
    bad = {id for id, event in ended.items() if event in (Event.FAILED, Event.WRONG)}
    last = max((position for position, id in enumerate(receipt.shown) if id in used), default=0)
    return Remembered(
        query_id=receipt.query_id,
        text=receipt.text,
        caller=receipt.caller,
        audiences=receipt.audiences,
        at=receipt.at,
        used=used,
        passed_over=frozenset({*receipt.shown[:last], *bad} - chosen),
        confirmed=answer.confirmed,
        encoder=receipt.encoder,
        vector=receipt.vector,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRule:
    """The constants of the memory, one set for all kinds and registries: results/experiment-learning.json.

    Args:
        neighbours: Remembered requests that vote.
        most_of_one: Votes of one other caller among them.
        floor: The similarity below which a remembered request does not vote.
        tau: By how much less similar a request has 1 / e of the vote.
        even: Similarity of the nearest one that says nothing about whether its capabilities are asked for again.
        spread: By how much more similar the odds of that are e times as high.
        prior: The weight of the first stage beside the votes, in votes, at `even`.
        unseen: Least share of the first stage's probability that a capability with outcomes is right, in [0, 1).
        temperature: Difference of two mixtures that makes one candidate e times as probable as another.
        passed: What being passed over counts, in (0, 1); being used counts 1.
        fused: Weight of the votes in the fusion that chooses candidates.
        elsewhere: What a capability loses there that was used, but for no such request.
    """

    neighbours: int = 20
    most_of_one: int = 5
    floor: float = 0.3
    tau: float = 0.09
    even: float = 0.49
    spread: float = 0.12
    prior: float = 4.0
    unseen: float = 0.08
    temperature: float = 0.03
    passed: float = 0.5
    fused: float = 1.0
    elsewhere: float = 0.13


RULE = MemoryRule()


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedFor:
    """The remembered requests that vote for a capability: how many, of how many callers, the best similarity.

    `texts` are those that the asking caller may read, most similar first.
    """

    requests: int
    callers: int
    similarity: float
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Votes:
    """The votes on a request: sums of weights by capability, and of all that voted.

    `reported` has the capabilities with an outcome that counts for the caller, on whatever request.
    """

    nearest: float
    weight: float
    used: Mapping[Id, float]
    passed_over: Mapping[Id, float]
    near: Sequence[Near]
    reported: Set[Id] = frozenset()

    def share(self, id: Id) -> float:
        """The share of the votes for a capability, in [0, 1]."""
        return self.used.get(id, 0.0) / self.weight

    def used_for(self, id: Id, audiences: Collection[str]) -> UsedFor | None:
        """Who votes for a capability; texts only of callers whose audiences the reader has, too."""
        voters = [each for each in self.near if id in each.memory.used]
        if id not in self.used or not voters:
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


def crowding(near: Sequence[Near], caller: str, rule: MemoryRule = RULE) -> frozenset[str]:
    """The other callers with more remembered requests among these than may vote."""
    counts = Counter(each.memory.caller for each in near if each.memory.caller != caller)
    return frozenset(other for other, count in counts.items() if count > rule.most_of_one)


def vote(near: Sequence[Near], caller: str, rule: MemoryRule = RULE) -> Votes | None:
    """The votes of remembered requests, nearest first, that count for a caller; None if there are none.

    Its own requests count at once, and those that an operator confirmed. Otherwise a vote for a capability, or against
    it, counts if two callers among them agree. What does not count takes no place among the neighbours.
    """
    voters = _voters(near, caller, rule)
    used = _counting([(each.memory, each.memory.used) for each in voters], caller)
    passed = _counting([(each.memory, each.memory.passed_over) for each in voters], caller)
    voters = [each for each in voters if not each.memory.used.isdisjoint(used)][: rule.neighbours]
    if not voters:
        return None
    nearest = voters[0].similarity
    weights = [math.exp((each.similarity - nearest) / rule.tau) for each in voters]
    sums: tuple[Counter[Id], Counter[Id]] = Counter(), Counter()
    for each, weight in zip(voters, weights, strict=True):
        for total, ids in zip(sums, (each.memory.used & used, each.memory.passed_over & passed), strict=True):
            for id in ids:
                total[id] += weight  # type: ignore[assignment]  # a Counter holds any number
    return Votes(nearest=nearest, weight=sum(weights), used=sums[0], passed_over=sums[1], near=voters)


def _voters(near: Sequence[Near], caller: str, rule: MemoryRule) -> list[Near]:
    """Those that are similar enough, of each other caller the nearest few."""
    counts: Counter[str] = Counter()
    voters: list[Near] = []
    for each in near:
        other = each.memory.caller
        counts[other] += 1
        if each.similarity >= rule.floor and (other == caller or counts[other] <= rule.most_of_one):
            voters.append(each)
    return voters


def _counting(said: Sequence[tuple[Remembered, frozenset[Id]]], caller: str) -> frozenset[Id]:
    """What the caller itself or an operator said, or two callers."""
    by_id: dict[Id, set[str]] = {}
    sure: set[Id] = set()
    for memory, ids in said:
        if memory.confirmed or memory.caller == caller:
            sure |= ids
        for id in ids:
            by_id.setdefault(id, set()).add(memory.caller)
    return frozenset(sure.union(id for id, callers in by_id.items() if len(callers) > 1))


def fuse_votes(fused: Mapping[Id, float], votes: Votes, rule: MemoryRule = RULE) -> dict[Id, float]:
    """First-stage scores with the votes added; capabilities that only the memory names are added."""
    scores = dict(fused)
    for id in fused:
        if id in votes.reported and id not in votes.used:
            scores[id] -= rule.elsewhere
    for id in votes.used:
        scores[id] = scores.get(id, 0.0) + rule.fused * votes.share(id)
    return scores


def shifts(mixtures: Mapping[Id, float], votes: Votes, rule: MemoryRule = RULE) -> dict[Id, float]:
    """What the votes add to the mixture of each candidate; none if they are for none of the candidates.

    Mixtures are read as probabilities that sum to 1. A capability with outcomes takes what the votes give it. One that
    has never been reported on is unknown, not wrong: it keeps its share of what is left, and only if it was shown and
    passed over for such a request, less. How much is left depends on the similarity of the nearest request and on how
    probable the first stage finds the capabilities with outcomes.
    """
    known = {id for id in mixtures if id in votes.reported or id in votes.used}
    if not any(id in votes.used for id in mixtures):
        return {}
    before = _probabilities(mixtures, rule.temperature)
    familiar = sum(before[id] for id in known)
    evidence = math.exp((votes.nearest - rule.even) / rule.spread)
    odds = (familiar + rule.unseen) / (1 - familiar + rule.unseen) * max(1.0, evidence)
    repeated = odds / (1 + odds)
    prior = rule.prior / evidence
    moved: dict[Id, float] = {}
    for id, share in before.items():
        if id in known:
            voted = votes.used.get(id, 0.0) + prior * share / max(familiar, _LEAST)
            after = repeated * voted / (votes.weight + prior)
        else:
            against = votes.passed_over.get(id, 0.0) / (votes.weight + prior)
            after = (1 - repeated) * (1 - rule.passed * against) * share / max(1 - familiar, _LEAST)
        moved[id] = rule.temperature * math.log(max(after, _LEAST) / max(share, _LEAST))
    return moved


def _probabilities(mixtures: Mapping[Id, float], temperature: float) -> dict[Id, float]:
    """Softmax."""
    top = max(mixtures.values())
    odds = {id: math.exp((mixture - top) / temperature) for id, mixture in mixtures.items()}
    total = sum(odds.values())
    return {id: each / total for id, each in odds.items()}
