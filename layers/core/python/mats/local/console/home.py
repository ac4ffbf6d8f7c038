"""The home page: what there is, what is new, and what was asked for and not found."""

from typing import Any

from mats.local.console.capability_list import Snapshot
from mats.local.console.demand import DemandReader
from mats.local.console.selection import ListQuery, Sort
from mats.local.console.use_counts import DAYS, UseCounts

_NEWEST, _GAPS = 6, 5
_FEW = 300
"""Answers whose demand is computed while the page waits."""


def home_page(snapshot: Snapshot, uses: UseCounts, demand: DemandReader) -> dict[str, Any]:
    """Its data; `demand` is null while that is computed for the first time."""
    newest = snapshot.page(ListQuery(sort=Sort.REGISTERED_DOWN, limit=_NEWEST), uses)["capabilities"]
    found = demand.get(DAYS) if uses.answers <= _FEW else demand.peek(DAYS)
    gaps = [{name: gap[name] for name in ("name", "requests", "callers", "examples")} for gap in _gaps(found)]
    return {
        "kinds": snapshot.kinds,
        "registered": len(snapshot.rows),
        "newest": newest,
        "answers": uses.answers,
        "unmatched": uses.unmatched_count,
        "demand": None if found is None else gaps,
    }


def _gaps(found: dict[str, Any] | None) -> list[dict[str, Any]]:
    gaps: list[dict[str, Any]] = found["gaps"] if found else []
    return gaps[:_GAPS]
