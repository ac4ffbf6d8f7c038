"""A background thread that refreshes the console's list every second."""

import logging
import threading
from collections.abc import Callable

from mats.domain.errors import DependencyFailed

_INTERVAL_S = 1.0
LOGGER = logging.getLogger("mats.console")


class RefreshThread(threading.Thread):
    """Calls `refresh` every second, so that a request reads only the changes of the last one."""

    def __init__(self, refresh: Callable[[], None]) -> None:
        super().__init__(name="refresh", daemon=True)
        self._refresh = refresh
        self._stopped = threading.Event()
        self._refreshed = threading.Event()

    def run(self) -> None:
        """Refresh until stopped; errors do not end it."""
        while True:
            try:
                self._refresh()
            except DependencyFailed:
                pass  # requests report it, and the worker logs it
            except Exception:
                LOGGER.exception("internal error: the console's list could not be refreshed")
            self._refreshed.set()
            if self._stopped.wait(_INTERVAL_S):
                return

    def wait(self, seconds: float) -> None:
        """Wait until the first refresh has ended, up to a timeout."""
        self._refreshed.wait(seconds)

    def stop(self) -> None:
        """End after the current refresh."""
        self._stopped.set()
        self.join(timeout=10)
