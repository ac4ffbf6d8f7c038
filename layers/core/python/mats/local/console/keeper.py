"""A thread that looks every second."""

import logging
import threading
from collections.abc import Callable

from mats.domain.errors import DependencyFailed

_PAUSE_S = 1.0
LOGGER = logging.getLogger("mats.console")


class Keeper(threading.Thread):
    """Looks in the background for as long as a service runs: who asks finds all but the last moments read already."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__(name="keeper", daemon=True)
        self._look = look
        self._stopped = threading.Event()
        self._looked = threading.Event()

    def run(self) -> None:
        """Look, wait, look again, whatever happens."""
        while True:
            try:
                self._look()
            except DependencyFailed:
                pass  # who asks is told, and the pump complains
            except Exception:
                LOGGER.exception("a bug of ours: the console's list could not be read")
            self._looked.set()
            if self._stopped.wait(_PAUSE_S):
                return

    def wait(self, seconds: float) -> None:
        """Wait until the first look is over, or so long."""
        self._looked.wait(seconds)

    def stop(self) -> None:
        """End after the look at hand."""
        self._stopped.set()
        self.join(timeout=10)
