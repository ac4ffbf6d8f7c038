"""Encoder, writer and reranker."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mats.domain.profile import Enrichment, Profile
from mats.domain.registration import Registration
from mats.domain.usage import Usage
from mats.ports.vectors import Vector


class Encoder(Protocol):
    """Turns texts into vectors whose cosine measures semantic similarity."""

    @property
    def name(self) -> str:
        """Model and settings: equal names give equal vectors."""
        ...

    @property
    def dimension(self) -> int:
        """Components per vector."""
        ...

    def encode_query(self, text: str) -> Vector:
        """The vector of a query.

        Raises:
            DependencyFailed: the model did not answer.
        """
        ...

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """The vectors of documents, in the order given; None for each failed one.

        Raises:
            DependencyFailed: all failed.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A writer's enrichment of a registration, with notes on faults and repairs."""

    enrichment: Enrichment
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)


class Writer(Protocol):
    """The enrichment LLM."""

    @property
    def name(self) -> str:
        """The model's id."""
        ...

    @property
    def prompt(self) -> str:
        """The hash of the prompt."""
        ...

    def describe(self, registration: Registration) -> Written:
        """The five fields of a registration, as the model wrote them; not yet grounded.

        Safe to call from several threads.

        Raises:
            ReplyUnusable: the reply is malformed; the raw profile stays.
            DependencyFailed: the model did not answer; safe to retry.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankResult:
    """The reply of a reranker: scores in [0, 1] for a prefix of the candidates, and the capability type it inferred.

    `void` is the reason if there are no scores, `clipped` counts those out of range, `cut_off`: truncated reply.
    """

    scores: tuple[float, ...] = ()
    intent: str | None = None
    usage: Usage = field(default_factory=Usage)
    clipped: int = 0
    cut_off: bool = False
    void: str = ""


class Reranker(Protocol):
    """The discovery LLM: one call per query."""

    @property
    def name(self) -> str:
        """The model's id."""
        ...

    @property
    def prompt(self) -> str:
        """The hash of the prompt."""
        ...

    def rerank(self, query: str, candidates: Sequence[Profile]) -> RerankResult:
        """Score each candidate for the query, in the order given, in one call.

        Safe to call from several threads.

        Raises:
            DependencyFailed: the model did not answer.
        """
        ...
