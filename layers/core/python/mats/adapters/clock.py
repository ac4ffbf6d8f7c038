"""The time and fresh identifiers, from the operating system."""

import secrets
import time
from datetime import UTC, datetime


class SystemClock:
    """The clock port over the system's clocks."""

    def now(self) -> str:
        """The current time, ISO 8601 in UTC."""
        return datetime.now(UTC).isoformat(timespec="milliseconds")

    def elapsed_ms(self) -> float:
        """Milliseconds of the monotonic clock."""
        return time.perf_counter() * 1000


def fresh_id() -> str:
    """128 random bits in hexadecimal."""
    return secrets.token_hex(16)
