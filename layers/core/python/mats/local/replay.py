"""Replay: run a logged query again and compare the ranking."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mats.domain.errors import Fault, RequestInvalid
from mats.domain.query import Query, Scope
from mats.domain.shortlist import Result, Shortlist


class RankedCandidate(NamedTuple):
    """A candidate in a ranking; positions count from 1."""

    position: int
    score: float
    rev: int
    signals: Mapping[str, float]


class Move(NamedTuple):
    """A candidate in the logged and in the current ranking; None where it is not in one."""

    id: str
    was: RankedCandidate | None
    now: RankedCandidate | None


def decision(query_id: str, logs: Iterable[Path]) -> dict[str, Any]:
    """The log record of a decision.

    Raises:
        RequestInvalid: none of the logs has it.
    """
    for record in (record for log in logs for record in _records(log)):
        if record.get("event") == "discovered" and record.get("query_id") == query_id:
            return record
    message = f"no decision {query_id!r} in the logs; `mats serve` logs its answers to mats.log"
    raise RequestInvalid([Fault("", message)])


def _records(log: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a log; text before them on a line is skipped."""
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            start = line.find("{")
            try:
                value = json.loads(line[start:]) if start >= 0 else None
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def logged_query(record: Mapping[str, Any]) -> Query:
    """The query of a record.

    Raises:
        RequestInvalid: the text of the query was not logged.
    """
    if "query" not in record:
        message = "was logged as a hash and cannot be replayed; set MATS_LOG_QUERIES=text for later queries"
        raise RequestInvalid([Fault("query", message)])
    return Query.parse({"query": record["query"], **record["filter"]})


def logged_scope(record: Mapping[str, Any]) -> Scope:
    """The filters of a record that only ARD has."""
    logged = record.get("scope", {})
    choices = frozenset(frozenset(choice) for choice in logged.get("tag_choices", ()))
    return Scope(frozenset(logged.get("homes", ())), choices)


def moves(record: Mapping[str, Any], shortlist: Shortlist) -> list[Move]:
    """Every candidate of both rankings, in the current order; those that are gone come last."""
    was = {entry["id"]: _ranked_then(entry) for entry in record["candidates"]}
    now = {result.candidate.profile.id: _ranked_now(n, result) for n, result in enumerate(shortlist.ranked, start=1)}
    return [Move(id, was.get(id), now.get(id)) for id in {**now, **was}]


def _ranked_then(entry: Mapping[str, Any]) -> RankedCandidate:
    return RankedCandidate(entry["position"], entry["score"], entry["rev"], entry["signals"])


def _ranked_now(position: int, result: Result) -> RankedCandidate:
    signals = {str(signal): round(value, 4) for signal, value in result.signals.items()}
    return RankedCandidate(position, round(result.score, 4), result.candidate.profile.rev, signals)
