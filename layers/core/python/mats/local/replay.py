"""A logged decision beside the same question asked again: what moved, and what it was made of then and now."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mats.domain.errors import Fault, RequestInvalid
from mats.domain.query import Query, Scope
from mats.domain.shortlist import Result, Shortlist


class Place(NamedTuple):
    """Where a candidate stood, and why: its position from 1, its score, its revision, its signals."""

    position: int
    score: float
    rev: int
    signals: Mapping[str, float]


class Move(NamedTuple):
    """A candidate then and now; None where it was not among those looked at."""

    id: str
    was: Place | None
    now: Place | None


def decision(query_id: str, logs: Iterable[Path]) -> dict[str, Any]:
    """The record of a decision.

    Raises:
        RequestInvalid: none of the logs has it.
    """
    for record in (record for log in logs for record in _records(log)):
        if record.get("event") == "discovered" and record.get("query_id") == query_id:
            return record
    message = f"no decision {query_id!r} in the logs; what `mats serve` answers is kept in mats.log"
    raise RequestInvalid([Fault("", message)])


def _records(log: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects of a log, whatever stands before them on their line."""
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            start = line.find("{")
            try:
                value = json.loads(line[start:]) if start >= 0 else None
            except ValueError:
                continue
            if isinstance(value, dict):
                yield value


def question(record: Mapping[str, Any]) -> Query:
    """What was asked.

    Raises:
        RequestInvalid: the text of the query was not logged.
    """
    if "query" not in record:
        message = "was logged by its hash only (MATS_LOG_QUERIES=hash), so it cannot be asked again"
        raise RequestInvalid([Fault("query", message)])
    return Query.parse({"query": record["query"], **record["filter"]})


def scope(record: Mapping[str, Any]) -> Scope:
    """What else the question was narrowed to, by a protocol that can say more than a query of ours."""
    said = record.get("scope", {})
    choices = frozenset(frozenset(choice) for choice in said.get("tag_choices", ()))
    return Scope(frozenset(said.get("homes", ())), choices)


def moves(record: Mapping[str, Any], shortlist: Shortlist) -> list[Move]:
    """Every candidate of then or now, in the order of now, those that are gone at the end."""
    was = {entry["id"]: _then(entry) for entry in record["candidates"]}
    now = {result.candidate.profile.id: _now(n, result) for n, result in enumerate(shortlist.ranked, start=1)}
    return [Move(id, was.get(id), now.get(id)) for id in {**now, **was}]


def _then(entry: Mapping[str, Any]) -> Place:
    return Place(entry["position"], entry["score"], entry["rev"], entry["signals"])


def _now(position: int, result: Result) -> Place:
    signals = {str(signal): round(value, 4) for signal, value in result.signals.items()}
    return Place(position, round(result.score, 4), result.candidate.profile.rev, signals)
