"""What a system under test gives back, and how it is asked many queries."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from mats.domain.capability import Id
from mats.domain.usage import Usage
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.measures import Run

LONGEST_QUERY = 2_000
"""Characters: the API's own bound."""

Progress = Callable[[int], None]


def unheard(count: int) -> None:
    """Progress nobody listens to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a system returned to one query.

    `ranked` is what it stands by, best first; a system that picks returns one id or none. `retrieved` is what its first
    stage put before whatever chose. `unseen` counts capabilities that did not fit where it looked.
    """

    ranked: Sequence[Id]
    retrieved: Sequence[Id] = ()
    usage: Usage = field(default_factory=Usage)
    took_ms: Mapping[str, float] = field(default_factory=dict)
    failed: str = ""
    """Why there is no answer where a model should have given one; it counts as a miss."""
    unseen: int = 0
    calls: int = 0
    """How often a model was asked."""
    replayed: int = 0
    """How many of these calls had a reply that was kept: they cost nothing now. Usage and times are the original's."""


System = Callable[[JudgedQuery], Answer]
"""Safe to call from several threads if it asks a model."""

Answers = Mapping[str, Answer]
"""By query id."""


def run_of(answers: Answers) -> Run:
    """The ranked ids of every query."""
    return {query: answer.ranked for query, answer in answers.items()}


def ask(system: System, queries: Sequence[JudgedQuery], *, at_once: int = 1, progress: Progress = unheard) -> Answers:
    """The answer to every query, in their order; so many are asked at once."""
    if at_once == 1:
        return dict(_told(queries, map(system, queries), progress))
    with ThreadPoolExecutor(at_once) as pool:
        return dict(_told(queries, pool.map(system, queries), progress))


def _told(
    queries: Sequence[JudgedQuery], answers: Iterable[Answer], progress: Progress
) -> Iterable[tuple[str, Answer]]:
    for query, answer in zip(queries, answers, strict=True):
        progress(1)
        yield query.id, answer
