"""`mats replay`."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from mats.bootstrap.local import local_system
from mats.domain.shortlist import Shortlist
from mats.local.cli.output import AsJson, exit_codes, out, plain, print_json
from mats.local.replay import Move, RankedCandidate, decision, logged_query, logged_scope, moves


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(replay)


def replay(
    context: typer.Context,
    query_id: Annotated[str, typer.Argument(help="The `query_id` of an answer of `mats serve`.")],
    log: Annotated[
        Path | None, typer.Option(help="Read this log instead, such as one fetched from CloudWatch.", dir_okay=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a logged query again and compare the rankings."""
    with exit_codes():
        local = local_system(context.obj)
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
                "moves": [_as_dict(move) for move in moved],
            }
        )
    else:
        _show(record, shortlist, moved)


def _models(shortlist: Shortlist) -> dict[str, str | None]:
    return {"rerank": shortlist.trace.reranker, "embed": shortlist.trace.encoder}


def _as_dict(move: Move) -> dict[str, Any]:
    sides = {"was": move.was, "now": move.now}
    return {"id": move.id, **{side: place and place._asdict() for side, place in sides.items()}}


def _show(record: dict[str, Any], shortlist: Shortlist, moved: list[Move]) -> None:
    out.print(plain(record["query"]), style="bold cyan")
    out.print(Text(f"verdict {_change(record['verdict'], shortlist.verdict)}", style="dim"))
    for role, model in _models(shortlist).items():
        if model != record["models"].get(role):
            out.print(Text(f"{role} {_change(record['models'].get(role), model)}", style="yellow"))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("was", "now", "score"):
        table.add_column(heading, justify="right")
    table.add_column("capability", overflow="fold", ratio=1)
    table.add_column("because", overflow="fold", ratio=1)
    for move in moved:
        score = _change(_score(move.was), _score(move.now))
        table.add_row(_position(move.was), _position(move.now), score, plain(move.id), _because(move))
    out.print(table)


def _change(was: object, now: object) -> str:
    return str(now) if was == now else f"{was} → {now}"


def _score(place: RankedCandidate | None) -> str:
    return f"{place.score:.2f}" if place else "–"


def _position(place: RankedCandidate | None) -> str:
    return str(place.position) if place else "–"


def _because(move: Move) -> str:
    """The differences between then and now: the revision, the signals."""
    if move.was is None or move.now is None:
        return "new among the candidates" if move.was is None else "no longer among the candidates"
    differing = [
        f"{name} {_change(_value(move.was, name), _value(move.now, name))}"
        for name in {**move.was.signals, **move.now.signals}
        if _value(move.was, name) != _value(move.now, name)
    ]
    revised = [f"revision {move.was.rev} → {move.now.rev}"] if move.was.rev != move.now.rev else []
    return ", ".join(revised + differing)


def _value(place: RankedCandidate, signal: str) -> str:
    return f"{place.signals[signal]:.2f}" if signal in place.signals else "none"
