"""The model of a role: the one an operator chose, or else the configured one."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mats.domain.errors import DependencyFailed
from mats.ports import OFF, Clock, ModelChoice, ModelSwitch, Reranker, Writer

M = TypeVar("M", Reranker, Writer)


def _ignore_failure(error: DependencyFailed) -> None:
    """The default."""


@dataclass(slots=True)
class CurrentChoice:
    """The choice as last read, at most once in `fresh_ms`, by one thread; others do not wait for it.

    A failed read counts as a read, and the last choice stays; before the first, the configured models are used.
    """

    switch: ModelSwitch
    clock: Clock
    fresh_ms: float = 60_000
    on_failure: Callable[[DependencyFailed], None] = _ignore_failure
    _choice: ModelChoice = ModelChoice()
    _read_ms: float | None = None
    _lock: Any = field(default_factory=threading.Lock)

    def __call__(self) -> ModelChoice:
        """The choice; blocks no longer than one read."""
        now = self.clock.elapsed_ms()
        due = self._read_ms is None or now - self._read_ms >= self.fresh_ms
        if due and self._lock.acquire(blocking=False):
            try:
                self._read_ms = now
                self._choice = self.switch.load()
            except DependencyFailed as error:
                self.on_failure(error)
            finally:
                self._lock.release()
        return self._choice


@dataclass(slots=True)
class SwitchedModel(Generic[M]):
    """The model of one role. `make` builds a model by its id, once; None: Bedrock is not configured."""

    chosen: Callable[[], str | None]
    make: Callable[[str], M | None]
    _made: dict[str, M | None] = field(default_factory=dict)

    def __call__(self, configured: M | None) -> M | None:
        """The model to call now; None if the role has none."""
        id = self.chosen()
        if id is None or (configured is not None and id == configured.name):
            return configured
        if id == OFF:
            return None
        if id not in self._made:
            self._made[id] = self.make(id)
        return self._made[id]
