"""The page of outcomes: how often what was found succeeded, as callers reported."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, Field

from mats.domain.capability.capability import Id
from mats.domain.learning.reliability import wilson_interval
from mats.local.console.use_counts import UseCounts
from mats.ports import OutcomeCounts, UseLog

_FAILURES = 20
"""Of the latest failures."""


class OutcomeSort(StrEnum):
    """The order of capabilities."""

    FAILED = "failed"
    RATE = "rate"
    REPORTED = "reported"
    LATEST = "latest"


class OutcomeQuery(BaseModel, frozen=True, extra="forbid"):
    """The parameters of the page of outcomes."""

    sort: OutcomeSort = OutcomeSort.FAILED
    limit: Annotated[int, Field(ge=1, le=200)] = 100


def outcomes_page(uses: UseCounts, log: UseLog, query: OutcomeQuery) -> dict[str, Any]:
    """Totals, the first capabilities in the order asked for, and the latest failures."""
    counted = uses.outcomes
    first = sorted(counted, key=lambda id: (_ORDERS[query.sort](counted[id]), id))[: query.limit]
    return {
        "totals": {"capabilities": len(counted), **_counts(_sum(counted))},
        "capabilities": [{"id": id, **_counts(counted[id])} for id in first],
        "more": max(0, len(counted) - query.limit),
        "failures": [failure._asdict() for failure in log.latest_failures(most=_FAILURES)],
    }


def use_json(uses: UseCounts, id: Id) -> dict[str, Any]:
    """How a capability is used: in how many answers it was shown, and what was reported on it."""
    return {"shown": uses.times_shown(id), **_counts(uses.outcomes_of(id))}


def _counts(counts: OutcomeCounts) -> dict[str, Any]:
    """With the share of success of what was called, and its 95 % interval; null if nothing was."""
    called = counts.succeeded + counts.failed
    rate = counts.succeeded / called if called else None
    low, high = wilson_interval(rate, called) if rate is not None else (None, None)
    return {**counts._asdict(), "rate": _round(rate), "low": _round(low), "high": _round(high)}


def _round(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def _sum(counted: Mapping[Id, OutcomeCounts]) -> OutcomeCounts:
    every = list(counted.values())
    return OutcomeCounts(
        selected=sum(one.selected for one in every),
        succeeded=sum(one.succeeded for one in every),
        failed=sum(one.failed for one in every),
        wrong=sum(one.wrong for one in every),
        last_success=max((one.last_success for one in every if one.last_success), default=None),
        last_failure=max((one.last_failure for one in every if one.last_failure), default=None),
    )


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
