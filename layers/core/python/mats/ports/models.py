"""Encoder, writer and reranker, and an operator's choice among them."""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import Enrichment, Profile
from mats.domain.prompts.usage import Usage

if TYPE_CHECKING:
    Vector: TypeAlias = array[float]
else:
    Vector = array  # `array[float]` needs Python 3.12
"""float32 components of Euclidean length 1."""

Labels: TypeAlias = Mapping[str, str]
"""Names of a call for logs, such as `query_id`: a name is letters and underscores, a value is any text."""
NO_LABELS: Labels = MappingProxyType({})


class Encoder(Protocol):
    """Turns texts into vectors whose cosine measures semantic similarity."""

    @property
    def name(self) -> str:
        """Model and settings: equal names give equal vectors."""

    @property
    def dimension(self) -> int:
        """Components per vector."""

    def encode_query(self, text: str) -> Vector:
        """The vector of a query.

        Raises:
            DependencyFailed: the model did not answer.
        """

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        """The vectors of documents, in the order given; None for each failed one.

        Raises:
            DependencyFailed: all failed.
        """


@runtime_checkable
class LanguageBound(Protocol):
    """An encoder that knows what it cannot read."""

    def reads(self, text: str) -> bool:
        """True if its vocabulary covers the language of a text."""

    def knows(self, word: str) -> bool:
        """True if its vocabulary has a word in lower case as a whole, so that it is spelled right."""


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

    @property
    def prompt(self) -> str:
        """The hash of the prompt."""

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        """The five fields of a registration, as the model wrote them; not yet grounded.

        Safe to call from several threads. Labels are for the provider's log of this call; the model does not read them.

        Raises:
            ReplyUnusable: the reply is malformed; the raw profile stays.
            DependencyFailed: the model did not answer; safe to retry.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankResult:
    """The reply of a reranker: scores in [0, 1] for a prefix of the candidates, and the capability type it inferred.

    `steps` are those that a task needs, each in words to search for; empty for a single step, or if it has no plan.
    `void` is the reason if there are no scores, `clipped` counts those out of range, `cut_off`: truncated reply.
    """

    scores: tuple[float, ...] = ()
    intent: str | None = None
    steps: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    clipped: int = 0
    cut_off: bool = False
    void: str = ""


class Reranker(Protocol):
    """The discovery LLM: one call per query."""

    @property
    def name(self) -> str:
        """The model's id."""

    @property
    def prompt(self) -> str:
        """The hash of the prompt."""

    def rerank(self, query: str, candidates: Sequence[Profile], labels: Labels = NO_LABELS) -> RerankResult:
        """Score each candidate (at least one) for the query, in the order given, in one call.

        Safe to call from several threads. Labels as in `Writer.describe`.

        Raises:
            DependencyFailed: the model did not answer.
        """


SwitchedRole = Literal["rerank", "writer"]
"""The roles whose model can be switched; another encoder would need other vectors."""
OFF = "none"
"""Chosen in place of a model: the role has none."""


class ModelChoice(NamedTuple):
    """The chosen model of each role: its id, `none`, or None for the configured one."""

    rerank: str | None = None
    writer: str | None = None
