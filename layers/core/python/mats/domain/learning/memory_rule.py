"""The constants of the memory. docs/decisions/0048."""

from dataclasses import dataclass


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
        most_repeated: Bound of the odds that a request asks for what was asked for before (`Votes.repeat_odds`).
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
    most_repeated: float = 8.0
    prior: float = 4.0
    unseen: float = 0.08
    temperature: float = 0.03
    passed: float = 0.5
    fused: float = 1.0
    elsewhere: float = 0.13


RULE = MemoryRule()
