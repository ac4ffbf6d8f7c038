"""Stages of an answer: each runs within a budget, and records its time or its fault in the trace.

A circuit breaker stops calls of a model after repeated failures and probes it from time to time.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mats.domain.errors import DependencyFailed, ModelRefused, OutOfTime, StorageUnusable
from mats.domain.profile.profile import Refusal
from mats.domain.search.trace import Span, Trace
from mats.ports import Clock


class CircuitBreaker:
    """Opens after `failures` failures in a row; then lets one probe through every `rest_ms` until one succeeds.

    Its state belongs to one process: every Lambda environment and every worker has its own.
    """

    def __init__(self, *, failures: int = 5, rest_ms: float = 10_000) -> None:
        self._limit, self._rest_ms = failures, rest_ms
        self._failures = 0
        self._next_probe_ms = 0.0
        self._lock = threading.Lock()

    def allows_call(self, now_ms: float) -> bool:
        """True if to call now; while open, only one probe is allowed."""
        with self._lock:
            if self._failures < self._limit:
                return True
            if now_ms < self._next_probe_ms:
                return False
            self._next_probe_ms = now_ms + self._rest_ms
            return True

    def record_failure(self, now_ms: float) -> None:
        """Count a call that got no reply."""
        with self._lock:
            self._failures += 1
            if self._failures == self._limit:
                self._next_probe_ms = now_ms + self._rest_ms

    def record_success(self) -> None:
        """Close: a reply came, usable or not."""
        with self._lock:
            self._failures = 0


T = TypeVar("T")

_DEGRADED: Mapping[str, str] = {"encode": "neural", "measure": "bm25", "rerank": "llm"}
"""The degraded part of the answer by stage, if the names differ."""
_ROLES: Mapping[str, str] = {"encode": "encoder", "rerank": "reranker"}  # The role of the model that a stage calls
NOT_ASKED = "not asked, because it failed several times in a row"  # The circuit breaker is open


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Timeouts in milliseconds, of models and of each call of the index; the answer continues without a late stage."""

    encode_ms: float = 400
    retrieve_ms: float = 600
    rerank_ms: float = 2_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Where stages run. `models` has the executor of each stage that calls a model, `executor` runs the others.

    A model that may hang needs threads of its own, so that it blocks no search. A stage that runs in the caller's own
    thread is finished when it has started: its budget does not interrupt it.
    """

    clock: Clock
    executor: Executor
    models: Mapping[str, Executor]
    budgets: Budgets = Budgets()
    breakers: Mapping[str, CircuitBreaker] = field(
        default_factory=lambda: {"encode": CircuitBreaker(), "rerank": CircuitBreaker()}
    )
    concurrent: bool = True  # False: all but models run in the caller's own thread, when they are started
    gate: AbstractContextManager[Any] = field(default_factory=nullcontext)
    """Limits concurrent retrievals: with many queries on few cores, budgets start only after the wait for it."""

    def begin(self, trace: Trace) -> "Run":
        return Run(self, trace, self.clock.elapsed_ms())


@dataclass(frozen=True, slots=True)
class Run:
    """The stages of one answer, or of one text of it, and the trace that they write."""

    stages: Stages
    trace: Trace
    began_ms: float  # On the monotonic clock

    def start(self, name: str, work: Callable[[], T], *, budget_ms: float | None = None) -> "Stage[T]":
        """Start a stage; without a budget given, it has that of a call of its model or of the index.

        A model whose circuit breaker is open is not called: the stage fails at once.
        """
        stages, clock, budgets = self.stages, self.stages.clock, self.stages.budgets
        usual_ms = {"encode": budgets.encode_ms, "rerank": budgets.rerank_ms}.get(name, budgets.retrieve_ms)
        budget_ms = usual_ms if budget_ms is None else budget_ms
        started_ms, breaker = clock.elapsed_ms(), stages.breakers.get(name)
        if breaker and not breaker.allows_call(started_ms):
            return Stage(name, budget_ms, started_ms, None, self, None)

        def timed_work() -> tuple[T, Span]:
            began = clock.elapsed_ms()
            return work(), Span(name, began, clock.elapsed_ms())

        future = stages.models.get(name, stages.executor).submit(timed_work)
        return Stage(name, budget_ms, started_ms, future, self, breaker)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn at retrieval, as the stage `queue`, and hold it for the length of a `with` block."""
        stages, started = self.stages, self.stages.clock.elapsed_ms()
        with stages.gate:
            self.trace.record(Span("queue", started, stages.clock.elapsed_ms()))
            yield

    def end(self) -> None:
        """Record the time of the whole answer."""
        self.trace.record(Span("total", self.began_ms, self.stages.clock.elapsed_ms()))


@dataclass(frozen=True, slots=True)
class Stage(Generic[T]):
    """A started stage; call `result` or `finish` once."""

    name: str
    budget_ms: float
    started_ms: float
    future: "Future[tuple[T, Span]] | None"  # None: it was not started
    run: Run
    breaker: CircuitBreaker | None

    def finish(self) -> T | None:
        """The stage's value; None, with its fault in the trace, if it failed."""
        try:
            return self.result()
        except DependencyFailed as error:
            self._lose(error)
            return None

    def result(self) -> T:
        """The stage's value; its time is recorded in the trace.

        Raises:
            OutOfTime: the budget, counted from the start, is used up; a running stage is not interrupted.
            DependencyFailed: what the stage called did not answer, or was not called.
        """
        clock = self.run.stages.clock
        if self.future is None:
            raise DependencyFailed(NOT_ASKED)
        left_ms = self.budget_ms - (clock.elapsed_ms() - self.started_ms)
        try:
            value, span = self.future.result(timeout=max(0.0, left_ms) / 1000)
        except TimeoutError as error:
            self.future.cancel()
            self._fail()
            raise OutOfTime(f"{self.name} took longer than {self.budget_ms:.0f} ms") from error
        except DependencyFailed:
            self._fail()
            raise
        if self.breaker:
            self.breaker.record_success()
        self.run.trace.record(span)
        return value

    def _fail(self) -> None:
        now_ms = self.run.stages.clock.elapsed_ms()
        self.run.trace.record(Span(self.name, self.started_ms, now_ms, failed=True))
        if self.breaker:
            self.breaker.record_failure(now_ms)

    def _lose(self, error: DependencyFailed) -> None:
        trace, name = self.run.trace, self.name
        trace.lose(_DEGRADED.get(name, name), f"{name}: {error}")
        if isinstance(error, StorageUnusable):
            trace.unusable = error
        if isinstance(error, ModelRefused):
            trace.refused.append(Refusal(role=_ROLES[name], model=error.model, cause=error.cause))
