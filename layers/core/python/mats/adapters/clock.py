"""Time and random identifiers, from the operating system."""

import secrets
import time
from datetime import UTC, datetime


class SystemClock:
    """The port `Clock` over the system's clocks."""

    def now(self) -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds")

    def elapsed_ms(self) -> float:
        return time.perf_counter() * 1000


def fresh_id() -> str:
    """128 random bits in hexadecimal."""
    return secrets.token_hex(16)
