"""The interface of a system under test, and how it is asked many queries."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias

from mats.domain.capability import Id
from mats.domain.usage import Usage
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.measures import Run

LONGEST_QUERY = 2_000
"""Characters: the limit of the API."""

Progress: TypeAlias = Callable[[int], None]


def no_progress(count: int) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAnswer:
    """The result of one query.

    `ranked` is best first; a system that picks returns one id or none. `retrieved` are the candidates of its first
    stage. `usage` and `took_ms` are those of
    the original calls, also where `cached` of the `calls` had a reply in the cache and cost nothing.
    """

    ranked: Sequence[Id]
    retrieved: Sequence[Id] = ()
    usage: Usage = field(default_factory=Usage)
    took_ms: Mapping[str, float] = field(default_factory=dict)
    failed: str = ""
    """The error of a model call without a usable result; the query counts as a miss."""
    calls: int = 0
    cached: int = 0


RankingSystem: TypeAlias = Callable[[JudgedQuery], SystemAnswer]
"""Safe to call from several threads if it calls a model."""

Answers: TypeAlias = Mapping[str, SystemAnswer]
"""By query id."""


def run_of(answers: Answers) -> Run:
    return {query: answer.ranked for query, answer in answers.items()}


def ask(
    system: RankingSystem, queries: Sequence[JudgedQuery], *, at_once: int = 1, progress: Progress = no_progress
) -> Answers:
    """The answer to every query, in their order; `at_once` is the number of threads."""
    answers: dict[str, SystemAnswer] = {}
    with ThreadPoolExecutor(at_once) as pool:
        results = map(system, queries) if at_once == 1 else pool.map(system, queries)
        for query, answer in zip(queries, results, strict=True):
            answers[query.id] = answer
            progress(1)
    return answers
