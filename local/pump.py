"""The in-process queue: takes announced changes to the enrichment handler until none wait."""

import logging
import threading
from collections.abc import Callable

from functions.enrichment.handler import respond
from local.envelope import sqs_batch
from mats.bootstrap import Local
from mats.domain.errors import DependencyFailed

BATCH = 64
"""Messages per call: enough for the encoder to sort them by length."""
_POLL_S = 0.25

LOGGER = logging.getLogger("mats.pump")


def drain(local: Local, done: Callable[[int], None] = lambda count: None) -> None:
    """Handle what waits and is due, a batch at a time, telling `done` how many each time.

    Raises:
        StorageUnusable: the registry cannot be written; what waits goes on waiting.
    """
    while taken := local.events.take(BATCH):
        response = respond(sqs_batch(taken), local.enrich)
        failed = frozenset(failure["itemIdentifier"] for failure in response["batchItemFailures"])
        local.events.settle(taken, failed, "its profile could not be brought up to date; see the log")
        done(len(taken) - len(failed))


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
                drain(self._local)
            except DependencyFailed as error:
                LOGGER.error("changes wait: %s", error)
                self._stopped.wait(5)

    def stop(self) -> None:
        """End after the batch at hand."""
        self._stopped.set()
        self.join(timeout=10)
