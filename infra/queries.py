"""The queries of operators over the logs of functions, saved in Logs Insights: docs/what-functions-log.md."""

from collections.abc import Mapping
from typing import NamedTuple


class SavedQuery(NamedTuple):
    """A query over the log of one function."""

    function: str
    lines: tuple[str, ...]


def saved_queries(*, hashed: bool = False) -> Mapping[str, SavedQuery]:
    """By name; `hashed`: the log has hashes in place of what callers asked."""
    request = "query_hash" if hashed else "query"
    return {
        "registration": SavedQuery("enrichment", (
            'filter event = "change" and id = "com.acme/refund_payment"',
            "fields @timestamp, result, receives, event_id, function_request_id",
            "sort @timestamp desc",
            "limit 20",
        )),
        "slow": SavedQuery("discovery", (
            'filter event = "discovered"',
            f"fields {request} as request, took_ms.total as total, took_ms.rerank as rerank, took_ms.encode as embed, "
            "took_ms.lexical as words, took_ms.neural as vectors, faults.0 as fault, cold_start",
            "display @timestamp, request, total, rerank, embed, words, vectors, fault, cold_start, query_id, "
            "xray_trace_id",
            "sort total desc",
            "limit 20",
        )),
        "cost": SavedQuery("discovery", (
            'filter event = "discovered"',
            "fields models.rerank as model",
            "stats count(*) as answers, sum(usd) as dollars, sum(input_tokens) as read, sum(output_tokens) as written "
            "by model",
            "sort dollars desc",
        )),
        "degraded": SavedQuery("discovery", (
            'filter event = "discovered" and ispresent(degraded.0)',
            "fields degraded.0 as lacks, faults.0 as fault",
            "stats count(*) as answers, latest(query_id) as example by lacks, fault",
            "sort answers desc",
            "limit 20",
        )),
        "unserved": SavedQuery("discovery", (
            'filter event = "discovered" and verdict in ["none", "weak"]',
            f"fields {request} as request, candidates.0.id as nearest",
            "stats count(*) as asked, latest(nearest) as best_candidate by request, verdict",
            "sort asked desc",
            "limit 50",
        )),
    }  # fmt: skip
