"""The worker: takes changes from the local event queue and enriches them."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from mats.bootstrap.local import LocalSystem
from mats.domain.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile import Cause
from mats.edge.changes import ChangeProcessor
from mats.ports import Change, QueuedChange

BATCH = 64
"""Events per batch without a writer: enough for the encoder to sort them by length."""
_POLL_S = 0.25
_RETRY_S = 5

LOGGER = logging.getLogger("mats.worker")


def drain(
    local: LocalSystem,
    on_batch: Callable[[int], None] = lambda count: None,
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Process the events that are due, a batch at a time; the number that failed.

    After each batch, `on_batch` is called with the number that succeeded. `stopped` ends the run between two batches.

    Raises:
        StorageUnusable: the registry cannot be written; events stay in the queue.
    """
    failures, seen = 0, 0
    local.stores.queue.release_orphans()
    batch = local.settings.writer_calls if local.models.writer else BATCH  # the writer's concurrent calls
    processor = local.change_processor
    if local.models.writer:
        processor = replace(processor, enrich=local.enrich.with_probe())
    while not stopped():
        if local.models.writer:
            seen = _index_raw(local, seen, stopped)
        if not (taken := local.stores.queue.take(batch)):
            break
        failed = _process(processor, taken)
        local.stores.queue.settle(taken, failed, "its profile could not be updated; see the log")
        on_batch(len(taken) - len(failed))
        failures += len(failed)
    return failures


def _index_raw(local: LocalSystem, seen: int, stopped: Callable[[], bool]) -> int:
    """Index raw profiles for every event after `seen`; the last event seen.

    The events stay in the queue, for the writer.
    """
    enrich = local.enrich
    raw = replace(local.change_processor, enrich=replace(enrich, maker=replace(enrich.maker, writer=None)))
    while not stopped() and (waiting := local.stores.queue.peek(seen, BATCH)):
        _process(raw, waiting)
        seen = waiting[-1].seq
    return seen


def _process(processor: ChangeProcessor, events: Sequence[QueuedChange]) -> frozenset[str]:
    """Process events; the ids of those that failed."""
    changes = {e.event_id: Change(Id(e.id), Cause(event_id=e.event_id, time=e.time)) for e in events}
    try:
        return frozenset(processor.process(changes))
    except DependencyFailed:
        raise
    except Exception:
        LOGGER.exception("internal error: events of %s failed", ", ".join(event.id for event in events[:5]))
        return frozenset(changes)


class EnrichmentWorker(threading.Thread):
    """Drains the event queue in the background while a service runs, including events of other processes."""

    def __init__(self, local: LocalSystem) -> None:
        super().__init__(name="worker", daemon=True)
        self._local = local
        self._stopped = threading.Event()

    def run(self) -> None:
        """Drain the queue at each poll; if the storage fails, wait longer."""
        while not self._stopped.wait(_POLL_S):
            try:
                drain(self._local, stopped=self._stopped.is_set)
            except DependencyFailed as error:
                LOGGER.error("the worker cannot use the storage; trying again in %s s: %s", _RETRY_S, error)
                self._stopped.wait(_RETRY_S)

    def stop(self) -> None:
        """End after the current batch."""
        self._stopped.set()
        self.join(timeout=10)
