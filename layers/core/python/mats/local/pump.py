"""The in-process queue: takes announced changes to the enrichment handler until none wait."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from functions.enrichment.handler import respond
from mats.bootstrap import Enrichment
from mats.bootstrap.local import Local
from mats.domain.errors import DependencyFailed
from mats.local.envelope import sqs_batch
from mats.ports import Event

BATCH = 64
"""Messages per call: enough for the encoder to sort them by length."""
_POLL_S = 0.25
_AFTER_FAULT_S = 5

LOGGER = logging.getLogger("mats.pump")


def drain(
    local: Local, done: Callable[[int], None] = lambda count: None, *, stopped: Callable[[], bool] = lambda: False
) -> int:
    """Handle what waits and is due, a batch at a time, telling `done` how many each time; how many failed.

    Raises:
        StorageUnusable: the registry cannot be written; what waits goes on waiting.
    """
    failures, seen = 0, 0
    local.events.release_orphans()
    batch = local.settings.writer_calls if local.writer else BATCH  # no more than are written at the same time
    while not stopped():
        if local.writer:
            seen = _raw_first(local, seen, stopped)
        if not (taken := local.events.take(batch)):
            break
        failed = _handle(local.enrichment, taken)
        local.events.settle(taken, failed, "its profile could not be brought up to date; see the log")
        done(len(taken) - len(failed))
        failures += len(failed)
    return failures


def _raw_first(local: Local, seen: int, stopped: Callable[[], bool]) -> int:
    """Make everything that came after an event findable as its owner wrote it; the last event seen.

    The events stay where they are: a writer reads them later, some at a time.
    """
    raw = replace(local.enrichment, enrich=replace(local.enrich, writer=None))
    while not stopped() and (waiting := local.events.peek(seen, BATCH)):
        _handle(raw, waiting)
        seen = waiting[-1].seq
    return seen


def _handle(enrichment: Enrichment, taken: Sequence[Event]) -> frozenset[str]:
    """The events that are not done, by event id. The handler lets a bug of ours out where it meets a lone event."""
    try:
        response = respond(sqs_batch(taken), enrichment)
    except DependencyFailed:
        raise
    except Exception:
        LOGGER.exception("a bug of ours while handling %s", ", ".join(event.id for event in taken[:5]))
        return frozenset(event.event_id for event in taken)
    return frozenset(failure["itemIdentifier"] for failure in response["batchItemFailures"])


class Pump(threading.Thread):
    """Drains in the background for as long as a service runs; what other processes announce is handled, too."""

    def __init__(self, local: Local) -> None:
        super().__init__(name="pump", daemon=True)
        self._local = local
        self._stopped = threading.Event()

    def run(self) -> None:
        """Drain, wait, drain again; a storage that fails is tried again, the service goes on answering."""
        while not self._stopped.wait(_POLL_S):
            try:
                drain(self._local, stopped=self._stopped.is_set)
            except DependencyFailed as error:
                LOGGER.error("changes wait: %s", error)
                self._stopped.wait(_AFTER_FAULT_S)

    def stop(self) -> None:
        """End after the batch at hand."""
        self._stopped.set()
        self.join(timeout=10)
