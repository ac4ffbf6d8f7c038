"""Render the tables of docs/scale.md: the simulated event path, and a month's cost of 10,000 queries a second."""

import json
from typing import Any

from infra.cost import SECONDS, PriceList, estimate
from infra.traffic import Traffic
from infra.vendor import ROOT
from mats.evaluation.reporting.rendered_pages import replace_block, rewrite

PAGE = ROOT / "docs" / "scale.md"
QUERIES_PER_S = 10_000
CAPABILITIES = 10_000_000
_RESULTS = ROOT / "evaluation" / "results" / "aws-event-path.json"
_SHOWN = 6


def render(page: str) -> str:
    """The page with its tables as results and prices have them now."""
    results = json.loads(_RESULTS.read_text(encoding="utf-8"))
    scenarios = {name: one for name, one in results.items() if isinstance(one, dict) and "load" in one}
    return replace_block(replace_block(page, "event path", _event_path(scenarios)), "cost", _cost())


def _event_path(scenarios: dict[str, Any]) -> str:
    lines = [
        "| configuration | functions | writer calls a minute | findable: p50 / p99 | complete: p50 / p99 "
        "| calls refused | queue empty after |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, one in scenarios.items():
        load = one["load"]
        lines.append(
            f"| {name} | {load['concurrency']:,} | {load['writer_per_minute']:,.0f} | {_pair(one['findable_s'])} "
            f"| {_pair(one['complete_s'])} | {sum(one['refused_calls'].values()):,} | {_time(one['drained_after_s'])} |"
        )
    return "\n".join(lines)


def _pair(percentiles: dict[str, float]) -> str:
    return f"{_time(percentiles['p50'])} / {_time(percentiles['p99'])}"


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _cost() -> str:
    month = QUERIES_PER_S * SECONDS
    costs: dict[str, float] = {}
    for line in estimate(Traffic(queries=month, capabilities=CAPABILITIES, size="production"), PriceList.load()):
        costs[line.service] = costs.get(line.service, 0.0) + line.usd
    largest = sorted(costs.items(), key=lambda each: -each[1])[:_SHOWN]
    lines = ["| service | dollars a month | dollars a million queries |", "|---|---:|---:|"]
    lines += [f"| {name} | {usd:,.0f} | {1e6 * usd / month:.2f} |" for name, usd in largest]
    return "\n".join(lines)


if __name__ == "__main__":
    rewrite({PAGE: render})
