"""Progress of indexing in a command: of everything that waits, or of the capabilities that it has changed."""

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.local.cli.output import bars
from mats.local.worker import MANY, EnrichmentWorker, drain

_SETTLE_S = 10  # Timeout for a running service that processes the same change
_PAUSE_S = 0.05
_COLLECTED_AFTER = 10_000
"""New objects between two garbage collections: indexing makes no cycles, and to look for them takes a fifteenth of its
time. Python's default is 700."""
_SWITCH_S = 0.0005  # Seconds that a thread of the encoder waits for Python's lock after each run; its default is 0.005
_STAGES = ("Findable by words", "Complete, with vectors")


def settle(local: LocalSystem, *ids: Id) -> None:
    """Process the changes of capabilities, or wait for a running service that does."""
    waited_s = 0.0  # for the other process; changes processed here have no timeout
    while True:
        drain(local, stopped=lambda: not _first_unfinished(local, ids))
        unfinished = _first_unfinished(local, ids)
        if not unfinished:
            return
        if waited_s >= _SETTLE_S:
            raise DependencyFailed(f"{unfinished}: the change is saved but not findable yet: run `mats reconcile`")
        time.sleep(_PAUSE_S)
        waited_s += _PAUSE_S


def _first_unfinished(local: LocalSystem, ids: Sequence[Id]) -> Id | None:
    return next((id for id in ids if local.stores.queue.has_unfinished(id)), None)


def index(local: LocalSystem) -> tuple[int, float]:
    """Drain the event queue with progress bars; the number of completed changes, and the seconds to findability.

    A change is findable by its words first: vectors and a writer's text may have come later.
    """
    began, findable_s = time.monotonic(), 0.0
    total = local.stores.queue.depth().waiting
    with bars(*_STAGES if total >= MANY and local.models.encoder else ("Indexing",), total=total) as (*raw, complete):

        def on_findable(count: int) -> None:
            nonlocal findable_s
            findable_s = time.monotonic() - began
            for each in raw:
                each(count)

        _prefer_throughput()
        drain(local, complete, on_findable=on_findable)
    queue, until = local.stores.queue, time.monotonic() + _SETTLE_S
    while sum(queue.depth()) > queue.failing() and time.monotonic() < until:  # A running service has taken some
        time.sleep(_PAUSE_S)
    return complete.count, findable_s or time.monotonic() - began


@dataclass(slots=True)
class Early:
    """Completes changes in a thread while a command writes more; `index` completes the rest."""

    opened: Callable[[], LocalSystem]
    _worker: EnrichmentWorker | None = None

    @property
    def total(self) -> int:
        return self._worker.completed if self._worker else 0

    def begin(self) -> None:
        """Called after each write: the first one starts the thread."""
        if not self._worker:
            self._worker = EnrichmentWorker(self.opened())
            self._worker.start()

    @contextmanager
    def open(self) -> Iterator["Early"]:
        """At the end, also after an error, the batch that was begun is completed: `index` would take it once more."""
        _prefer_throughput()
        try:
            yield self
        finally:
            if self._worker:
                self._worker.stop(completes_batch=True)


def _prefer_throughput() -> None:
    """Until the command ends: the process has nothing else to do."""
    gc.set_threshold(_COLLECTED_AFTER, *gc.get_threshold()[1:])
    sys.setswitchinterval(_SWITCH_S)
