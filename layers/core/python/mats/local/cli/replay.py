"""`mats replay`: run a logged query again and compare the rankings."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.text import Text

from mats.bootstrap.local import local_system
from mats.domain.errors import Fault, NotPossible
from mats.domain.ranking.clauses import cut_at_clauses, with_implied_step
from mats.domain.ranking.query import Query, Scope
from mats.domain.shortlist.rank import Shortlist
from mats.local.cli.output import AsJson, out, plain, print_json, table_of


class RankedCandidate(NamedTuple):
    """A candidate in a ranking; positions count from 1."""

    position: int
    score: float
    rev: int
    signals: Mapping[str, float]
    memory: float = 0.0  # The change of the mixture behind `retrieval` by remembered requests


class Move(NamedTuple):
    """A candidate in the logged and in the current ranking; None where it is not in one."""

    id: str
    was: RankedCandidate | None
    now: RankedCandidate | None


def replay(
    context: typer.Context,
    query_id: Annotated[str, typer.Argument(help="The `query_id` of an answer of `mats serve`.")],
    log: Annotated[
        Path | None,
        typer.Option(help="Read this log instead, such as one fetched from CloudWatch.", dir_okay=False, exists=True),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a logged query again and compare the rankings."""
    local = local_system(context.obj, create=False)
    record = decision(query_id, [log] if log else sorted(local.settings.home.glob("mats.log*")))
    shortlist = local.discover(logged_query(record), record.get("audiences", ()), logged_scope(record))
    moved = moves(record, shortlist)
    if as_json:
        print_json(
            {
                "query_id": query_id,
                "query": record["query"],
                "verdict": {"was": record["verdict"], "now": shortlist.verdict},
                "degraded": {"was": record["degraded"], "now": shortlist.degraded},
                "models": {"was": record["models"], "now": _models(shortlist)},
                "moves": [
                    {"id": id, "was": was and was._asdict(), "now": now and now._asdict()} for id, was, now in moved
                ],
            }
        )
    else:
        _show(record, shortlist, moved)


def _models(shortlist: Shortlist) -> dict[str, str | None]:
    return {"rerank": shortlist.trace.reranker, "embed": shortlist.trace.encoder}


def _show(record: dict[str, Any], shortlist: Shortlist, moved: list[Move]) -> None:
    out.print(plain(record["query"]), style="bold cyan")
    out.print(Text(f"verdict {_change(record['verdict'], shortlist.verdict)}", style="dim"))
    for role, model in _models(shortlist).items():
        if model != record["models"].get(role):
            out.print(Text(f"{role} {_change(record['models'].get(role), model)}", style="yellow"))
    table = table_of("was", "now", "score", "capability", "because", right=("was", "now", "score"))
    for move in moved:
        sides = (move.was, move.now)
        positions = [str(place.position) if place else "–" for place in sides]
        score = _change(*(f"{place.score:.2f}" if place else "–" for place in sides))
        table.add_row(*positions, score, plain(move.id), _because(move))
    out.print(table)


def _change(was: object, now: object) -> str:
    return str(now) if was == now else f"{was} → {now}"


def _because(move: Move) -> str:
    """The differences between then and now: the revision, the signals, the memory."""
    if move.was is None or move.now is None:
        return "new among the candidates" if move.was is None else "no longer among the candidates"
    names = {**move.was.signals, **move.now.signals}
    values = [(name, _value(move.was, name), _value(move.now, name)) for name in names]
    differing = [f"{name} {_change(was, now)}" for name, was, now in values if was != now]
    revised = [f"revision {move.was.rev} → {move.now.rev}"] if move.was.rev != move.now.rev else []
    was, now = f"{move.was.memory:+.2f}", f"{move.now.memory:+.2f}"
    learned = [f"memory {_change(was, now)}"] if was != now else []
    return ", ".join(revised + differing + learned)


def _value(place: RankedCandidate, signal: str) -> str:
    return f"{place.signals[signal]:.2f}" if signal in place.signals else "none"


def decision(query_id: str, logs: Iterable[Path]) -> dict[str, Any]:
    for record in (record for log in logs for record in _records(log)):
        if record.get("event") == "discovered" and record.get("query_id") == query_id:
            return record
    message = f"no decision {query_id!r} in the logs; `mats serve` logs its answers to mats.log"
    raise NotPossible([Fault("", message)])


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
    if "query" not in record:
        message = "was logged as a hash and cannot be replayed; set MATS_LOG_QUERIES=text for later queries"
        raise NotPossible([Fault("query", message)])
    text, steps = record["query"], tuple(part["query"] for part in record.get("parts", ()))
    planned = steps not in ((), (text,), with_implied_step(text, cut_at_clauses(text)))
    request: dict[str, Any] = {"queries": steps} if planned else {"query": text, "parts": bool(steps)}
    return Query.parse({**request, **record["filter"]})


def logged_scope(record: Mapping[str, Any]) -> Scope:
    """The filters of a record that only ARD has."""
    logged = record.get("scope", {})
    choices = frozenset(frozenset(choice) for choice in logged.get("tag_choices", ()))
    return Scope(frozenset(logged.get("homes", ())), choices)


def moves(record: Mapping[str, Any], shortlist: Shortlist) -> list[Move]:
    """Every candidate of both rankings, in the current order; those that are gone come last."""
    fields = RankedCandidate._fields
    was = {
        entry["id"]: RankedCandidate(**{name: entry[name] for name in fields if name in entry})
        for entry in record["candidates"]
    }
    now = {
        result.id: RankedCandidate(
            position,
            round(result.score, 4),
            result.candidate.profile.rev,
            {str(signal): round(value, 4) for signal, value in result.signals.items()},
            round(result.candidate.shift, 4),
        )
        for position, result in enumerate(shortlist.ranked, start=1)
    }
    return [Move(id, was.get(id), now.get(id)) for id in {**now, **was}]
