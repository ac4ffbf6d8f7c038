"""A reranker that attackers deceive: the worst case with a model."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.ports import NO_LABELS, Labels, RerankResult

RIGHT, OTHER = 0.95, 0.2
"""Scores of what serves the request, or claims to, and of the rest."""


@dataclass(frozen=True, slots=True)
class DeceivedReranker:
    """Gives every capability that is not honest the score of the right one; it makes no other mistake.

    Args:
        relevant: The relevant capabilities by query text; a text may have more after its end.
        honest: The capabilities that no attacker has registered.
    """

    relevant: Mapping[str, frozenset[Id]]
    honest: Collection[Id]
    name: str = "deceived"
    prompt: str = ""

    def rerank(self, query: str, candidates: Sequence[Profile], labels: Labels = NO_LABELS) -> RerankResult:
        right = next((ids for text, ids in self.relevant.items() if query.startswith(text)), frozenset[Id]())
        deceived = (profile.id in right or profile.id not in self.honest for profile in candidates)
        return RerankResult(scores=tuple(RIGHT if high else OTHER for high in deceived))
