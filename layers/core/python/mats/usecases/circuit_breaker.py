"""Circuit breaker: stops calls to a dependency after repeated failures and probes it from time to time."""

import threading


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
        """Whether to call now; while open, only one probe is allowed."""
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
