"""Estimated cost of a month in AWS for a given traffic, with every formula: `make cost`."""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from infra.capacity import needs
from infra.prices import Line, PriceList, load_json
from infra.receipt_cost import receipt_lines
from infra.traffic import ASSUMED, SIZES, Assumptions, CannotEstimate, Traffic, fits
from infra.vendor import ROOT
from mats.settings import TITAN

_RERANK = ROOT / "evaluation" / "results" / "bench-rerank.json"

__all__ = ["Line", "PriceList", "estimate", "main", "report"]

HOURS = 730
SECONDS = HOURS * 3600
METRICS = 44
"""Custom metrics: 24 of discovery, 11 of enrichment, 6 of feedback, 3 of the Pipes' state; those of refusals apart."""
ALARM_METRICS = 52
"""An alarm on an expression is charged once for each metric in it."""
NIGHTS = 30
PIECE_S = 780
"""A piece of maintenance ends two minutes before the function's timeout."""
TRANSITIONS = 4
"""States that an execution passes through for each piece, at most."""
TABLES_WITH_STREAM = 3
INTERFACE_ENDPOINTS = 2
"""Bedrock and EventBridge; DynamoDB's is a gateway, which costs nothing."""
SQS_POLLS = 2 * 5 * SECONDS // 20
"""Lambda asks an empty queue five at a time, each waiting 20 seconds."""
STREAM_READS = 4 * SECONDS
"""A Pipe reads a shard four times a second; counted as if each were charged."""


def estimate(traffic: Traffic, prices: PriceList, assumed: Assumptions = ASSUMED) -> list[Line]:
    """Every line of the month's bill.

    Raises:
        CannotEstimate: something has no price.
    """
    return [
        *_domain(traffic, prices),
        *_standing(traffic, prices, assumed),
        *_maintenance(traffic, prices, assumed),
        *_queries(traffic, prices, assumed),
        *_changes(traffic, prices, assumed),
    ]


def _domain(traffic: Traffic, prices: PriceList) -> Iterator[Line]:
    size = SIZES[traffic.size]
    yield prices.line(size.node, size.nodes * HOURS, f"{size.nodes} × {HOURS} hours", fixed=True)
    if size.masters:
        yield prices.line(size.master, size.masters * HOURS, f"{size.masters} masters × {HOURS} hours", fixed=True)
    yield prices.line("gp3_gb", size.nodes * size.gb_each, f"{size.nodes} × {size.gb_each} GB", fixed=True)


def _standing(traffic: Traffic, prices: PriceList, assumed: Assumptions) -> Iterator[Line]:
    """The lines that do not depend on traffic."""
    yield prices.line(
        "snapstart_gb_s",
        assumed.kept_versions * assumed.discovery_gb * SECONDS,
        f"{assumed.kept_versions} versions × {assumed.discovery_gb:.3g} GB × {SECONDS:,} s",
        fixed=True,
    )
    yield prices.line(
        "dynamodb_stream_read",
        TABLES_WITH_STREAM * STREAM_READS,
        f"{TABLES_WITH_STREAM} streams × 4 a second × {SECONDS:,} s",
        fixed=True,
    )
    yield prices.line("sqs_request", SQS_POLLS, f"2 queues × 5 pollers × {SECONDS:,} s / 20 s", fixed=True)
    yield prices.line("workflow_request", SECONDS / 300, f"the Pipes' state, {SECONDS:,} s / 300 s", fixed=True)
    yield prices.line("metric", METRICS, f"{METRICS} metrics", fixed=True)
    yield prices.line("alarm", ALARM_METRICS, f"{ALARM_METRICS} metrics in alarms", fixed=True)
    yield prices.line("dashboard", 1, "1 dashboard", fixed=True)
    yield prices.line("key", 1, "the key of the alarms' topic", fixed=True)
    stored = traffic.capabilities * assumed.stored_kb / 1e6
    why = f"{traffic.capabilities:,} capabilities × {assumed.stored_kb:g} kB"
    yield prices.line("dynamodb_gb", stored, why, fixed=True)
    yield prices.line("dynamodb_backup_gb", stored, why, fixed=True)
    if traffic.network == "vpc":
        zones = SIZES[traffic.size].nodes
        hours = INTERFACE_ENDPOINTS * zones * HOURS
        why = f"{INTERFACE_ENDPOINTS} endpoints × {zones} zones × {HOURS} hours"
        yield prices.line("endpoint_hour", hours, why, fixed=True)


def _maintenance(traffic: Traffic, prices: PriceList, assumed: Assumptions) -> Iterator[Line]:
    """Comparisons of everything, every night and twice for each deployment."""
    runs = NIGHTS + 2 * assumed.deployments
    compared = runs * traffic.capabilities
    count = f"{runs} comparisons × {traffic.capabilities:,} capabilities"
    yield prices.line("dynamodb_read", compared * assumed.reconcile_read_units, count, fixed=True)
    seconds = compared * assumed.maintenance_s_per_1000 / 1000
    why = f"{count} × {assumed.maintenance_s_per_1000:g} s / 1,000 × {assumed.maintenance_gb:g} GB"
    yield prices.line("lambda_gb_s", seconds * assumed.maintenance_gb, why, fixed=True)
    pieces = runs * max(1, math.ceil(seconds / runs / PIECE_S)) + NIGHTS
    yield prices.line("lambda_request", pieces, f"pieces of {PIECE_S} s, and the nightly look at versions", fixed=True)
    yield prices.line("state_transition", pieces * TRANSITIONS, f"{TRANSITIONS} for each piece", fixed=True)


def _queries(traffic: Traffic, prices: PriceList, assumed: Assumptions) -> Iterator[Line]:
    queries = traffic.queries
    count = f"{queries:,} queries"
    yield prices.line("api_call", queries, count)
    yield prices.line("lambda_request", queries, count)
    yield prices.line(
        "lambda_gb_s",
        queries * assumed.discovery_gb * assumed.discovery_s,
        f"{count} × {assumed.discovery_gb:.3g} GB × {assumed.discovery_s:g} s",
    )
    why = f"a restore of {assumed.discovery_gb:.3g} GB for {assumed.queries_per_restore} queries"
    yield prices.line("snapstart_restore_gb", queries / assumed.queries_per_restore * assumed.discovery_gb, why)
    yield from prices.tokens(TITAN, queries, (assumed.query_tokens, 0), "of a query (assumed)")
    yield from prices.tokens(traffic.rerank_model, queries, _rerank_tokens(), f"a call (median, {_RERANK.name})")
    logged = queries * assumed.query_log_kb / 1e6
    yield prices.line("log_gb", logged, f"{count} × {assumed.query_log_kb:g} kB")
    yield from receipt_lines(traffic, prices, assumed)
    if traffic.network == "vpc":
        yield prices.line("endpoint_gb", logged, f"{count} × {assumed.query_log_kb:g} kB, about as much as is logged")


def _changes(traffic: Traffic, prices: PriceList, assumed: Assumptions) -> Iterator[Line]:
    changed = traffic.changes
    count = f"{changed:,} changes"
    yield prices.line("dynamodb_write", changed * assumed.write_units, f"{count} × {assumed.write_units}")
    yield prices.line("dynamodb_read", changed * assumed.read_units, f"{count} × {assumed.read_units}")
    yield prices.line("pipe_request", changed, count)
    yield prices.line("event", changed, count)
    yield prices.line("archive_gb", changed / 1e6, f"{count} × 1 kB")
    yield prices.line("sqs_request", changed * 3, f"{count} × sent, received, deleted")
    yield prices.line("lambda_request", changed, count)
    yield prices.line(
        "lambda_gb_s",
        changed * assumed.enrichment_gb * assumed.enrichment_s,
        f"{count} × {assumed.enrichment_gb:g} GB × {assumed.enrichment_s:g} s",
    )
    written = (assumed.writer_input_tokens, assumed.writer_output_tokens)
    yield from prices.tokens(traffic.writer_model, changed, written, "a description (assumed)")
    yield from prices.tokens(TITAN, changed, (assumed.profile_tokens, 0), "of a profile (assumed)")
    yield prices.line("log_gb", changed * assumed.change_log_kb / 1e6, f"{count} × {assumed.change_log_kb:g} kB")


def _rerank_tokens() -> tuple[float, float]:
    """In and out of a call, as `make bench BENCH=rerank` measured them."""
    measured = load_json(_RERANK)
    return float(measured["input_tokens"]["p50"]), float(measured["output_tokens"]["p50"])


def report(traffic: Traffic, lines: Sequence[Line], table: Mapping[str, Any]) -> str:
    """The bill as text."""
    total = sum(line.usd for line in lines)
    fixed = sum(line.usd for line in lines if line.fixed)
    text = [f"A month with {', '.join(f'{name}={value}' for name, value in asdict(traffic).items())}:"]
    for heading, chosen in (("Without any traffic", True), ("For the traffic", False)):
        text += ["", heading]
        text += [_row(x.usd, f"{x.service}: {x.formula}   [{x.why}]") for x in lines if x.fixed == chosen]
    text += ["", _row(fixed, "without traffic"), _row(total - fixed, "for traffic"), _row(total, "in all")]
    if traffic.queries:
        text.append(_row(1000 * total / traffic.queries, "a thousand queries"))
    if not fits(traffic):
        text += ["", f"{traffic.capabilities:,} capabilities fill more than half of a {traffic.size} domain."]
    text += ["", *needs(traffic)]
    text += [
        "",
        f"Prices: {table['what']}; {table['region']}, {table['as_of']}; {table['source']}.",
        "Not counted: data out to the Internet, support, a custom domain, WAF, the console, throttled retries, mail.",
    ]
    return "\n".join(text)


def _row(usd: float, text: str) -> str:
    return f"  {usd:10,.2f}  {text}"


def _count(text: str) -> int:
    """Parse an integer such as 1e6 or 100000."""
    return int(float(text))


def main(arguments: Sequence[str] | None = None) -> None:
    """Estimate the cost of a month in AWS."""
    default = Traffic()
    parser = argparse.ArgumentParser(prog="make cost", description=main.__doc__)
    for name in ("queries", "changes", "capabilities"):
        shown = getattr(default, name)
        parser.add_argument(f"--{name}", type=_count, default=shown, help=f"default {shown:,}")
    for name in ("size", "network", "rerank_model", "writer_model"):
        shown = getattr(default, name)
        parser.add_argument(f"--{name.replace('_', '-')}", default=shown, help=f"default {shown}")
    parser.add_argument("--json", action="store_true", help="for scripts")
    given = vars(parser.parse_args(arguments))
    as_json = given.pop("json")
    try:
        traffic, prices = Traffic(**given), PriceList.load()
        lines = estimate(traffic, prices)
    except CannotEstimate as error:
        sys.exit(str(error))
    if as_json:
        listed = [asdict(line) | {"usd": line.usd, "formula": line.formula} for line in lines]
        output = json.dumps(
            {"traffic": asdict(traffic), "lines": listed, "usd": sum(line.usd for line in lines)}, indent=1
        )
    else:
        output = report(traffic, lines, prices.table)
    sys.stdout.write(f"{output}\n")


if __name__ == "__main__":
    main()
