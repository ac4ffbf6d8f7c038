"""Estimated cost of receipts, feedback, and what answers read of it."""

from collections.abc import Iterator

from infra.prices import Line, PriceList
from infra.traffic import Assumptions, Traffic


def receipt_lines(traffic: Traffic, prices: PriceList, assumed: Assumptions) -> Iterator[Line]:
    """A receipt for each answer, what callers report about some of them, and the tallies of candidates."""
    queries = traffic.queries
    written = queries * assumed.receipt_writes * assumed.receipt_kb
    why = f"{queries:,} receipts × {assumed.receipt_writes} × {assumed.receipt_kb:g} kB"
    yield prices.line("dynamodb_write", written, why)
    yield prices.line(
        "dynamodb_gb", queries * assumed.receipt_kb / 1e6, f"receipts of a month, {assumed.receipt_kb:g} kB"
    )
    yield prices.line(
        "dynamodb_read", queries * assumed.tally_read_units, f"{queries:,} queries × {assumed.tally_read_units:g}"
    )
    reports = queries * assumed.reported_share
    count = f"{assumed.reported_share:.0%} of {queries:,} answers are reported on"
    yield prices.line("api_call", reports, count)
    yield prices.line("lambda_request", reports, count)
    yield prices.line("lambda_gb_s", reports * assumed.feedback_gb_s, f"{count} × {assumed.feedback_gb_s:g} GB s")
    yield prices.line("dynamodb_write", reports * assumed.report_write_units, f"{count} × {assumed.report_write_units}")
    rows = reports * assumed.report_rows
    count = f"{count} × {assumed.report_rows} rows"
    yield prices.line("pipe_request", rows, count)
    yield prices.line("event", rows, count)
    yield prices.line("sqs_request", rows * 3, f"{count} × sent, received, deleted")
    yield prices.line("lambda_request", rows, f"{count}, at most")
    yield prices.line("lambda_gb_s", rows * assumed.learning_gb_s, f"{count} × {assumed.learning_gb_s:g} GB s")
