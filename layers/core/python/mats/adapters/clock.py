"""Time, retention in days, and random identifiers, from the operating system."""

import secrets
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from mats.ports import Clock


class SystemClock:
    """The port `Clock` over the system's clocks."""

    def now(self) -> str:
        return datetime.now(UTC).isoformat(timespec="milliseconds")

    def elapsed_ms(self) -> float:
        return time.perf_counter() * 1000


def fresh_id() -> str:
    """128 random bits in hexadecimal."""
    return secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Retention:
    """A number of days, and the clock that counts them; 0: for ever."""

    days: int = 0
    clock: Clock = field(default_factory=SystemClock)

    def expires_at(self) -> int | None:
        """When a version that is superseded now expires, in seconds since 1970."""
        return self.in_days(self.days) if self.days else None

    def in_days(self, days: int) -> int:
        """The time so many days from now, in seconds since 1970."""
        return self.now() + int(timedelta(days=days).total_seconds())

    def now(self) -> int:
        """Seconds since 1970."""
        return int(datetime.fromisoformat(self.clock.now()).timestamp())


FOR_EVER = Retention()
