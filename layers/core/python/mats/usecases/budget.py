"""Stages that must answer within a budget, run beside each other."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from mats.domain.errors import OutOfTime
from mats.ports import Clock

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage(Generic[T]):
    """A stage that has been started; ask once for its result."""

    name: str
    budget_ms: float
    started_ms: float
    clock: Clock
    future: "Future[tuple[T, float]]"

    def result(self) -> tuple[T, float]:
        """What the stage gave, and the milliseconds it took.

        Raises:
            OutOfTime: the budget, counted from its start, is spent; the stage is left to end on its own.
            Exception: whatever the stage raised.
        """
        left_ms = self.budget_ms - (self.clock.elapsed_ms() - self.started_ms)
        try:
            return self.future.result(timeout=max(0.0, left_ms) / 1000)
        except TimeoutError as error:
            self.future.cancel()
            raise OutOfTime(f"{self.name} took longer than {self.budget_ms:.0f} ms") from error


def start(name: str, work: Callable[[], T], *, budget_ms: float, executor: Executor, clock: Clock) -> Stage[T]:
    """Begin a stage on another thread."""
    began = clock.elapsed_ms()

    def timed() -> tuple[T, float]:
        own = clock.elapsed_ms()
        return work(), clock.elapsed_ms() - own

    return Stage(name, budget_ms, began, clock, executor.submit(timed))
