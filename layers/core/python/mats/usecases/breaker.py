"""Stop asking what does not answer, and look again from time to time."""

import threading


class Breaker:
    """Opens after some failures in a row; then admits one probe per rest until one succeeds.

    It belongs to one process: every Lambda environment and every worker finds out for itself.
    """

    def __init__(self, *, failures: int = 5, rest_ms: float = 10_000) -> None:
        self._limit, self._rest_ms = failures, rest_ms
        self._failures = 0
        self._next_probe_ms = 0.0
        self._lock = threading.Lock()

    def admits(self, now_ms: float) -> bool:
        """Whether to ask now; while open, the one that is admitted is the probe."""
        with self._lock:
            if self._failures < self._limit:
                return True
            if now_ms < self._next_probe_ms:
                return False
            self._next_probe_ms = now_ms + self._rest_ms
            return True

    def failed(self, now_ms: float) -> None:
        """What was asked did not answer."""
        with self._lock:
            self._failures += 1
            if self._failures == self._limit:
                self._next_probe_ms = now_ms + self._rest_ms

    def answered(self) -> None:
        """It is alive, whatever it said."""
        with self._lock:
            self._failures = 0
