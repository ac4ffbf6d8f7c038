"""What a month in AWS costs, by service and size of the deployment: `make cost`.

Prices, assumptions and the lines of the bill are in bill.json; replace assumptions by figures of your dashboard.
"""

import argparse
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from infra.alarms import OWN, charged_metrics
from infra.context import Context
from infra.sizes import SIZES
from infra.vendor import ROOT
from mats.domain.prompts.usage import Prices

BILL: Mapping[str, Any] = json.loads(Path(__file__).with_name("bill.json").read_text("utf-8"))
"""`prices` by key; `assumed`: value and meaning by name; `fixed` and `variable`: key and formula of each line."""
ASSUMED: Mapping[str, float] = {name: value for name, (value, _) in BILL["assumed"].items()}
RERANK = ROOT / "experiments" / "results" / "bench-rerank.json"
"""Tokens of a rerank call, as measured by `make bench BENCH=rerank`."""
HOURS = 730
Month = dict[str, defaultdict[str, float]]  # Dollars by service, of what is `fixed` and what is `variable`
QUERIES, CHANGES, CAPABILITIES = 100_000, 1_000, 10_000  # Of the month, by default


def month(size: str, *, queries: int = QUERIES, changes: int = CHANGES, capabilities: int = CAPABILITIES) -> Month:
    """The bill of a month with this traffic."""
    values = _values(size, queries=queries, changes=changes, capabilities=capabilities)
    bill: Month = {kind: defaultdict(float) for kind in ("fixed", "variable")}
    for kind, services in bill.items():
        for key, formula in BILL[kind]:
            if quantity := _product(formula, values):
                service, usd = _price(key.format(**values))
                services[service] += quantity * usd
    return bill


def _values(size: str, *, queries: int, changes: int, capabilities: int) -> dict[str, Any]:
    """The values of the names in keys and formulas."""
    small, context = size == "small", Context()
    comparisons = ASSUMED["nights"] + 2 * ASSUMED["deployments"]
    comparison_s = capabilities * ASSUMED["maintenance_s_per_1000"] / 1000
    tokens = json.loads(RERANK.read_text("utf-8"))
    return {
        "queries": queries,
        "changes": changes,
        "capabilities": capabilities,
        **ASSUMED,
        **asdict(SIZES[size]),
        "rerank_model": context.rerank_model,
        "writer_model": context.writer_model,
        "encoder_model": context.encoder_model.partition(":")[0],
        "hours": HOURS,
        "seconds": HOURS * 3600,
        "query_metrics": 0 if small else len(OWN["discovery"]) + len(OWN["feedback"]),
        "change_metrics": 0 if small else sum(len(OWN[name]) for name in ("enrichment", "learning", "maintenance")),
        "query_hours": min(queries, HOURS),  # a metric is charged by the hour in which it is written
        "change_hours": min(changes, HOURS),
        "alarm_metrics": charged_metrics(usd_per_hour=context.spend_per_hour, few=small),
        "dashboards": 0 if small else 1,
        "snap_start": 0 if small else 1,
        "comparisons": comparisons,
        "pieces": comparisons * max(1, math.ceil(comparison_s / ASSUMED["piece_s"])) + ASSUMED["nights"],
        "rerank_input_tokens": tokens["input_tokens"]["p50"],
        "rerank_output_tokens": tokens["output_tokens"]["p50"],
        "files": int(small),
    }


def _product(formula: str, values: Mapping[str, Any]) -> float:
    """The value of names and numbers with `*` or `/` between them."""
    result = 1.0
    for operator, term in re.findall(r"([*/]?) ?([\w.]+)", formula):
        value = float(values.get(term, term))
        result = result / value if operator == "/" else result * value
    return result


def _price(key: str) -> tuple[str, float]:
    """The service and the dollars of one unit, by a key of bill.json, or `<model> tokens in` or `out`."""
    model, _, direction = key.partition(" tokens ")
    if not direction:
        price = BILL["prices"][key]
        return price["service"], price["usd"] / price["per"]
    prices = Prices.parse(json.loads((ROOT / "layers/core/python/mats/prices.json").read_text("utf-8")))
    usd = prices.usage(model, *((10**6, 0) if direction == "in" else (0, 10**6))).usd
    assert usd is not None, model  # noqa: S101 - the default models have prices
    return "Bedrock", usd / 10**6


def table(**traffic: int) -> Iterator[str]:
    """The lines of a table in Markdown: a service in each row, a size in each column."""
    months = {size: month(size, **traffic) for size in SIZES}
    names = {service for one in months.values() for services in one.values() for service in services}

    def row(title: str, chosen: Sequence[str], kinds: Sequence[str]) -> str:
        sums = (sum(one[kind][service] for kind in kinds for service in chosen) for one in months.values())
        return f"| {title} | {' | '.join(f'{usd:,.2f}' for usd in sums)} |"

    yield f"| dollars a month | {' | '.join(f'`{size}`' for size in SIZES)} |"
    yield f"|---|{'---:|' * len(SIZES)}"
    both = tuple(months["trial"])
    yield from (row(service, [service], both) for service in sorted(names))
    yield row("without traffic", [*names], ["fixed"])
    yield row("**in all**", [*names], both)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what a month in AWS costs, by service and size of the deployment."""
    parser = argparse.ArgumentParser(prog="make cost", description=main.__doc__)
    for name, default in {"queries": QUERIES, "changes": CHANGES, "capabilities": CAPABILITIES}.items():
        parser.add_argument(
            f"--{name}", type=lambda text: int(float(text)), default=default, help=f"default {default:,}"
        )
    traffic = vars(parser.parse_args(arguments))
    told = ", ".join(f"{count:,} {name}" for name, count in traffic.items())
    source = f"{BILL['region']}, {BILL['as_of']}: {BILL['what']}; {BILL['source']}."
    not_counted = "data out to the Internet, support, a web ACL, a VPC's endpoints, mail and its KMS key."
    sys.stdout.write("\n".join([f"{told}. {source}", "", *table(**traffic), "", f"Not counted: {not_counted}", ""]))


if __name__ == "__main__":
    main()
