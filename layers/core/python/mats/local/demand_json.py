"""Demand as JSON, for the command line and the console."""

from dataclasses import asdict
from typing import Any

from mats.usecases.find_demand import Demand


def demand_json(demand: Demand) -> dict[str, Any]:
    """Every gap with its counts, examples and nearest capability."""
    return {
        "since": demand.since,
        "requests": demand.requests,
        "unmet": demand.unmet,
        "ungrouped": demand.ungrouped,
        "gaps": [asdict(gap) for gap in demand.gaps],
    }
