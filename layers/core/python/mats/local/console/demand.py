"""Reports over the log of use, computed again only as often as their cost allows; the JSON of demand."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Generic, TypeVar

from mats.domain.errors import CapabilityError
from mats.usecases.find_demand import Demand

_CHEAP_S = 0.05  # A cheaper computation runs at every request
_SHARE = 20  # A costlier one runs again after so many times its duration
_QUERY_IDS = 20

LOGGER = logging.getLogger("mats.console")
T = TypeVar("T")


class ReportReader(Generic[T]):
    """Safe to share between threads."""

    def __init__(self, find: Callable[[int], T], now: Callable[[], float] = time.monotonic) -> None:
        """`find` computes the report of so many days."""
        self._find, self._now = find, now
        self._found: dict[int, tuple[float, float, T]] = {}  # When it was computed, its cost in seconds, the report
        self._lock = threading.Lock()
        self._running: set[int] = set()

    def get(self, days: int) -> T:
        """The report of the last days. What is costly may be minutes old, and is then renewed in the background."""
        at, cost_s, report = self._found.get(days, (0.0, 0.0, None))
        if report is None or cost_s < _CHEAP_S:
            return self._compute(days)
        if self._now() - at > _SHARE * cost_s:
            self._start(days)
        return report

    def peek(self, days: int) -> T | None:
        """As `get`, but None where it would have to be computed first; that is then done in the background."""
        if days in self._found:
            return self.get(days)
        self._start(days)
        return None

    def _start(self, days: int) -> None:
        def renew() -> None:
            try:
                self._compute(days)
            except CapabilityError as error:
                LOGGER.warning("a report was not computed: %s", error)
            finally:
                self._running.discard(days)

        with self._lock:
            if days in self._running:
                return
            self._running.add(days)
        threading.Thread(target=renew, name="report", daemon=True).start()

    def _compute(self, days: int) -> T:
        began = self._now()
        report = self._find(days)
        ended = self._now()
        self._found[days] = (ended, ended - began, report)
        return report


def demand_json(demand: Demand) -> dict[str, Any]:
    """Every gap with its counts, examples and nearest capability, and some query ids for `mats replay`."""
    gaps = [{**asdict(gap), "query_ids": gap.query_ids[:_QUERY_IDS]} for gap in demand.gaps]
    return {**demand._asdict(), "gaps": gaps}
