"""The interface of a system under test, and how it is asked many queries."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.prompts.usage import Usage
from mats.domain.search.candidate import Result
from mats.domain.search.verdict import Verdict
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.measures import Run

LONGEST_QUERY = 2_000  # Characters: the limit of the API
_REASONS = 20

Progress: TypeAlias = Callable[[int], None]


def no_progress(count: int) -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAnswer:
    """The result of one query.

    `ranked` is best first; a system that picks returns one id or none. `retrieved` are the candidates of its first
    stage. `usage` and `took_ms` are those of the original calls, also where `cached` of the `calls` had a reply in the
    cache and cost nothing. `took_ms` has `total` for every system: milliseconds with local work, without waiting for
    other queries.
    """

    ranked: Sequence[Id]
    retrieved: Sequence[Id] = ()
    usage: Usage = field(default_factory=Usage)
    took_ms: Mapping[str, float] = field(default_factory=dict)
    results: Sequence[Result] = ()  # Those of the pipeline, with their signals; none of another system
    verdict: Verdict | None = None  # That of the pipeline
    failed: str = ""  # The error of a model call without a usable result; the query counts as a miss
    calls: int = 0
    cached: int = 0


RankingSystem: TypeAlias = Callable[[JudgedQuery], SystemAnswer]
"""Safe to call from several threads if it calls a model."""

Answers: TypeAlias = Mapping[str, SystemAnswer]  # By query id


def run_of(answers: Answers) -> Run:
    return {query: answer.ranked for query, answer in answers.items()}


def failure_counts(answers: Answers) -> dict[str, int]:
    """The number of failed queries by reason: the commonest twenty, first the commonest."""
    reasons = Counter(answer.failed for answer in answers.values() if answer.failed)
    return dict(reasons.most_common(_REASONS))


def total_failure(answers: Answers) -> str:
    """How many failed and why, if every query did; empty otherwise."""
    if not answers or not all(answer.failed for answer in answers.values()):
        return ""
    return failure_text(len(answers), len(answers), failure_counts(answers))


def failure_text(failed: int, queries: int, reasons: Mapping[str, int]) -> str:
    """A line such as `failed 15/15; the commonest reason (12): Input is too long`."""
    reason, count = next(iter(reasons.items()))
    return f"failed {failed:,}/{queries:,}; the commonest reason ({count:,}): {reason}"


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
