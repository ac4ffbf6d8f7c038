"""Demand as JSON, for the command line and the console."""

from dataclasses import asdict
from typing import Any

from mats.usecases.find_demand import Demand

_QUERY_IDS = 20


def demand_json(demand: Demand) -> dict[str, Any]:
    """Every gap with its counts, examples and nearest capability, and some query ids for `mats replay`."""
    return {
        "since": demand.since,
        "requests": demand.requests,
        "unmet": demand.unmet,
        "ungrouped": demand.ungrouped,
        "gaps": [{**asdict(gap), "query_ids": gap.query_ids[:_QUERY_IDS]} for gap in demand.gaps],
    }
