"""Stages of an answer: each runs within a budget, and records its time or its fault in the trace.

A circuit breaker stops calls of a model after repeated failures and probes it from time to time.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from mats.domain.errors import DependencyFailed, ModelRefused, OutOfTime, StorageUnusable
from mats.domain.profile.profile import Refusal
from mats.domain.shortlist.trace import Trace
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

_DEGRADED: Mapping[str, str] = {"encode": "neural", "measure": "bm25", "rerank": "llm", "reported": "memory"}
"""The degraded part of the answer by stage, if the names differ."""
_ROLES: Mapping[str, str] = {"encode": "encoder", "rerank": "reranker"}  # The role of the model that a stage calls


NOT_ASKED = "not asked, because it failed several times in a row"  # The circuit breaker is open


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Timeouts in milliseconds, of models and of each call of the index; the answer continues without a late stage."""

    encode_ms: float = 400
    retrieve_ms: float = 600
    rerank_ms: float = 2_500


@dataclass(frozen=True, slots=True)
class Stage(Generic[T]):
    """A started stage; call `result` once."""

    name: str
    budget_ms: float
    started_ms: float
    clock: Clock
    future: "Future[tuple[T, float]]"

    def result(self, trace: Trace) -> T:
        """The stage's value; its time is recorded in the trace.

        Raises:
            OutOfTime: the budget, counted from the start, is used up; a running stage is not interrupted.
            Exception: any exception of the stage.
        """
        left_ms = self.budget_ms - (self.clock.elapsed_ms() - self.started_ms)
        try:
            value, took_ms = self.future.result(timeout=max(0.0, left_ms) / 1000)
        except TimeoutError as error:
            self.future.cancel()
            raise OutOfTime(f"{self.name} took longer than {self.budget_ms:.0f} ms") from error
        trace.took_ms[self.name] = took_ms
        return value


def finish(stage: Stage[T] | None, trace: Trace) -> T | None:
    """The stage's value; None, with its fault in the trace, if it failed, and for no stage."""
    if stage is None:
        return None
    try:
        return stage.result(trace)
    except DependencyFailed as error:
        trace.lose(_DEGRADED.get(stage.name, stage.name), f"{stage.name}: {error}")
        if isinstance(error, StorageUnusable):
            trace.unusable = error
        if isinstance(error, ModelRefused):
            trace.refused.append(Refusal(role=_ROLES[stage.name], model=error.model, cause=error.cause))
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Starts stages. `models` has the executor of each stage that calls a model, `executor` runs the others.

    A model that may hang needs threads of its own, so that it blocks no search. A stage that runs in the caller's own
    thread is finished when it has started: its budget does not interrupt it.
    """

    clock: Clock
    executor: Executor
    models: Mapping[str, Executor]
    budgets: Budgets = Budgets()

    def start(self, name: str, work: Callable[[], T], *, budget_ms: float | None = None) -> Stage[T]:
        """Start a stage; without a budget given, it has that of a call of its model or of the index."""
        clock, budgets = self.clock, self.budgets
        usual_ms = {"encode": budgets.encode_ms, "rerank": budgets.rerank_ms}.get(name, budgets.retrieve_ms)

        def timed_work() -> tuple[T, float]:
            began = clock.elapsed_ms()
            return work(), clock.elapsed_ms() - began

        started_ms, executor = clock.elapsed_ms(), self.models.get(name, self.executor)
        return Stage(name, usual_ms if budget_ms is None else budget_ms, started_ms, clock, executor.submit(timed_work))

    def begin_call(
        self, name: str, work: Callable[[], T], breaker: CircuitBreaker, trace: Trace
    ) -> Callable[[], T | None]:
        """Start a call of a model; the function that is returned waits for the reply.

        It is None, with a fault in the trace, if the call failed or the circuit breaker is open.
        """
        if not breaker.allows_call(self.clock.elapsed_ms()):
            trace.lose(_DEGRADED[name], f"{name}: {NOT_ASKED}")
            return lambda: None
        stage = self.start(name, work)

        def reply() -> T | None:
            value = finish(stage, trace)
            if value is None:
                breaker.record_failure(self.clock.elapsed_ms())
            else:
                breaker.record_success()
            return value

        return reply


@dataclass(slots=True)
class Cached(Generic[T]):
    """A value that is loaded at most once in `fresh_ms`, by one thread; others get the last one without waiting.

    A failed load counts as a load, and the last value stays.
    """

    load: Callable[[], T]  # Raises DependencyFailed: the store did not answer
    value: T  # Before the first load, what counts
    clock: Clock
    fresh_ms: float
    on_failure: Callable[[DependencyFailed], None]
    _loaded_ms: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self) -> T:
        """The value; blocks no longer than one load."""
        now = self.clock.elapsed_ms()
        due = self._loaded_ms is None or now - self._loaded_ms >= self.fresh_ms
        if due and self._lock.acquire(blocking=False):
            try:
                self._loaded_ms = now
                self.value = self.load()
            except DependencyFailed as error:
                self.on_failure(error)
            finally:
                self._lock.release()
        return self.value
