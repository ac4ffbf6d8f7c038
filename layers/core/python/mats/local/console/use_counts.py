"""How often each capability was shown and succeeded: sums kept in memory, read as they grow; the page of outcomes."""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from mats.bootstrap.local import SqliteUseLog
from mats.domain.capability.capability import Id
from mats.domain.learning.reliability import wilson_interval
from mats.edge.schema import Parameters
from mats.local.preview.mirror import FIVE
from mats.ports import Clock, OutcomeCounts, ShownAnswer

DAYS = 30  # Days of answers that are counted, today included
_MOST_ANSWERS = 100_000  # Answers that are read at the start, the latest; later ones are counted as they come
_BATCH = 5_000
_FAILURES = 20  # Of the latest failures
_NONE = OutcomeCounts()


class UseCounts:
    """Counts of answers of the last days and of all outcomes. Safe to share between threads."""

    def __init__(self, log: SqliteUseLog, clock: Clock) -> None:
        self._log, self._clock = log, clock
        self._lock = threading.Lock()
        self._answers_position: int | None = None
        self._outcomes_position: int | None = None
        self._days: dict[str, Counter[Id]] = {}
        self._requests: Counter[str] = Counter()
        self._unmatched: Counter[str] = Counter()
        self._stale: set[Id] = set()
        self._shown: Counter[Id] = Counter()
        self._found: dict[str, set[Id]] = {}
        self._outcomes: dict[Id, OutcomeCounts] = {}
        self.version = 0  # Differs after every change of a count

    @property
    def outcomes(self) -> Mapping[Id, OutcomeCounts]:
        with self._lock:
            return dict(self._outcomes)

    @property
    def answers(self) -> int:
        return self._requests.total()

    @property
    def unmatched_count(self) -> int:
        return self._unmatched.total()

    def times_shown(self, id: Id) -> int:
        """In how many answers of the last days a capability was shown."""
        return self._shown.get(id, 0)

    def times_found(self, id: Id) -> int:
        """On how many of the last days an answer had it among the first five."""
        return sum(id in found for found in self._found.values())

    def outcomes_of(self, id: Id) -> OutcomeCounts:
        return self._outcomes.get(id, _NONE)

    def recheck(self, ids: Collection[Id]) -> None:
        """Read the outcomes of these again: with a registration, what was reported on it goes."""
        with self._lock:
            self._stale.update(id for id in ids if id in self._outcomes)

    def refresh(self) -> None:
        """Count what was stored since the last call. A failed call is repeated by the next one."""
        with self._lock:
            self._count_answers()
            self._count_outcomes()

    def _count_answers(self) -> None:
        oldest = (datetime.fromisoformat(self._clock.now()) - timedelta(days=DAYS - 1)).date().isoformat()
        while True:
            most = _MOST_ANSWERS if self._answers_position is None else _BATCH
            position, answers = self._log.answers(self._answers_position, most=most)
            self._answers_position = position
            for answer in answers:
                if answer.at >= oldest:
                    self._count(answer)
            self.version += bool(answers)
            if len(answers) < most:
                break
        for day in [day for day in self._days if day < oldest]:
            self._shown.subtract(self._days.pop(day))
            del self._requests[day], self._unmatched[day], self._found[day]
            self.version += 1

    def _count(self, answer: ShownAnswer) -> None:
        day = answer.at[:10]
        self._days.setdefault(day, Counter()).update(answer.shown)
        self._shown.update(answer.shown)
        self._found.setdefault(day, set()).update(answer.shown[:FIVE])
        self._requests[day] += 1
        self._unmatched[day] += answer.unmatched

    def _count_outcomes(self) -> None:
        position, ids = self._log.changes(self._outcomes_position)
        changed = sorted(self._stale.union(ids))
        for start in range(0, len(changed), _BATCH):
            batch = changed[start : start + _BATCH]
            counts = self._log.counts(batch)
            for id in batch:
                self._outcomes.pop(id, None)
            self._outcomes.update(counts)
            self.version += 1
        self._outcomes_position, self._stale = position, set()


class OutcomeSort(StrEnum):
    """The order of capabilities."""

    FAILED = "failed"
    RATE = "rate"
    REPORTED = "reported"
    LATEST = "latest"


class OutcomeQuery(Parameters):
    sort: OutcomeSort = OutcomeSort.FAILED
    limit: Annotated[int, Field(ge=1, le=200)] = 100


def outcomes_page(uses: UseCounts, log: SqliteUseLog, query: OutcomeQuery) -> dict[str, Any]:
    """Totals, the first capabilities in the order asked for, and the latest failures."""
    counted = uses.outcomes
    first = sorted(counted, key=lambda id: (_ORDERS[query.sort](counted[id]), id))[: query.limit]
    return {
        "totals": {"capabilities": len(counted), **counts_json(_sum(counted.values()))},
        "capabilities": [{"id": id, **counts_json(counted[id])} for id in first],
        "more": max(0, len(counted) - query.limit),
        "failures": [failure._asdict() for failure in log.latest_failures(most=_FAILURES)],
    }


def counts_json(counts: OutcomeCounts) -> dict[str, Any]:
    """With the share of success of what was called, and its 95 % interval; null if nothing was."""
    called = counts.succeeded + counts.failed
    rate = counts.succeeded / called if called else None
    low, high = wilson_interval(rate, called) if rate is not None else (None, None)
    shares = {"rate": rate, "low": low, "high": high}
    return {**counts._asdict(), **{name: share if share is None else round(share, 4) for name, share in shares.items()}}


def _sum(every: Collection[OutcomeCounts]) -> OutcomeCounts:
    *numbers, successes, failures = zip(*every, strict=True) if every else [()] * len(OutcomeCounts._fields)
    latest = (max(filter(None, times), default=None) for times in (successes, failures))
    selected, succeeded, failed, wrong = map(sum, numbers)
    return OutcomeCounts(selected, succeeded, failed, wrong, *latest)


def _rate(counts: OutcomeCounts) -> float:
    """The upper end of the interval, so that many failures come before one of one; without calls, last."""
    called = counts.succeeded + counts.failed
    return wilson_interval(counts.succeeded / called, called)[1] if called else 2.0


def _latest(counts: OutcomeCounts) -> float:
    latest = max(counts.last_success or "", counts.last_failure or "")
    return -float("".join(filter(str.isdigit, latest[:19])) or 0)


_ORDERS: Mapping[OutcomeSort, Callable[[OutcomeCounts], float]] = {
    OutcomeSort.FAILED: lambda counts: -(counts.failed + counts.wrong),
    OutcomeSort.RATE: _rate,
    OutcomeSort.REPORTED: lambda counts: -sum((counts.selected, counts.succeeded, counts.failed, counts.wrong)),
    OutcomeSort.LATEST: _latest,
}
