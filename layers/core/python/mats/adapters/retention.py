"""How long superseded versions of profiles are kept."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mats.adapters.clock import SystemClock
from mats.ports import Clock


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
