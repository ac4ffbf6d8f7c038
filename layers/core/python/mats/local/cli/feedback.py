"""The commands on what callers ask and report: feedback, its confirmation, demand, what owners lose, replay."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from mats.bootstrap import open_system
from mats.bootstrap.local import find_demand, local_system
from mats.domain.errors import Fault, NotPossible
from mats.domain.learning.demand import Gap
from mats.domain.learning.outcome import Event
from mats.domain.ranking.clauses import cut_at_clauses
from mats.domain.ranking.query import Query, Scope, with_implied_step
from mats.domain.shortlist.rank import Shortlist
from mats.edge.feedback import FeedbackRequest, require
from mats.edge.http import local_caller
from mats.local.cli import output as ui
from mats.local.console.demand import demand_json
from mats.local.preview.mirror import FIVE, Mirror, MirrorQuery
from mats.settings import SettingsInvalid

_SHOWN = 20
_Days = Annotated[int, ui.option("Only the last N days; receipts are kept for 30.", min=1, max=3650)]


def feedback(
    context: typer.Context,
    query_id: Annotated[str, ui.argument("`query_id` of the answer.")],
    selected: Annotated[list[str] | None, ui.option("Id of a result that was chosen; repeatable.")] = None,
    succeeded: Annotated[list[str] | None, ui.option("Id of a result that did what was asked for; repeatable.")] = None,
    failed: Annotated[list[str] | None, ui.option("Id of a result that was called and failed; repeatable.")] = None,
    wrong: Annotated[list[str] | None, ui.option("Id of a result that does something else; repeatable.")] = None,
    missing: Annotated[str | None, ui.option("What was needed and not found.")] = None,
) -> None:
    """Report what happened to the results of an answer, so that later answers are better."""
    reported = {Event.SELECTED: selected, Event.SUCCEEDED: succeeded, Event.FAILED: failed, Event.WRONG: wrong}
    outcomes = [{"id": id, "event": event} for event, ids in reported.items() for id in ids or ()]
    wish = FeedbackRequest.parse({"query_id": query_id, "outcomes": outcomes, "missing": missing})
    local = local_system(context.obj, create=False)
    with closing(local):
        answer = require(local.feedback)(local_caller(local.settings), wish)
    text = f"{ui.count_of(answer.recorded, 'new outcome')} recorded"
    if missing:
        text = f"recorded what was missing; {text}" if outcomes else "recorded what was missing"
    ui.show(answer.model_dump(), text)


def confirm(
    context: typer.Context,
    query_id: Annotated[str, ui.argument("`query_id` of an answer with feedback; `mats replay` shows it.")],
    withdraw: Annotated[bool, ui.option("Take an earlier confirmation back.", "--withdraw")] = False,
) -> None:
    """Confirm what a caller reported on an answer, here or in AWS, so that it counts for every caller."""
    outcomes = open_system(context.obj, create=False).stores.outcomes
    if outcomes is None:
        raise SettingsInvalid("missing: set MATS_OUTCOMES_TABLE and MATS_TALLIES_TABLE")
    if not outcomes.confirm(query_id, confirmed=not withdraw):
        raise NotPossible([Fault("QUERY_ID", f"nothing is reported on {query_id[:80]!r}: see `mats feedback -h`")])
    text = f"{query_id}: {'no longer confirmed' if withdraw else 'confirmed; its outcomes count for every caller'}"
    ui.show({"query_id": query_id, "confirmed": not withdraw}, text)


def demand(
    context: typer.Context,
    days: _Days = 30,
) -> None:
    """Show what callers asked for and did not find, grouped by meaning.

    Counts requests with the verdict none or weak, and those whose callers reported that nothing served them. What they
    reported as served counts against a group.
    """
    local = local_system(context.obj, create=False)
    found = find_demand(local, days)
    ui.show(demand_json(found), _gaps(found.gaps))
    if ui.is_json():
        return
    unmet = f"{found.unmet:,} of {ui.count_of(found.requests, 'request')} in {days} days were not served"
    groups = ui.count_of(len(found.gaps), "group")
    ui.note(f"{unmet}; {groups}" if found.requests else f"no receipts of the last {days} days")


def _gaps(gaps: Sequence[Gap]) -> ui.Lines:
    for gap in gaps[:_SHOWN]:
        yield ui.plain(gap.name or "(the texts of these requests are not stored)", "bold")
        yield ui.facts(_facts_of(gap))
    if len(gaps) > _SHOWN:
        yield f"and {len(gaps) - _SHOWN:,} more; --json has all"


def _facts_of(gap: Gap) -> list[tuple[str, object]]:
    verdicts = "".join(f"{count} {verdict}, " for verdict, count in gap.verdicts.items())
    asked = f"{ui.count_of(gap.requests, 'time')} by {ui.count_of(gap.callers, 'caller')}"
    rows: list[tuple[str, object]] = [
        ("asked", f"{asked} ({verdicts}{gap.reported} reported as unserved)"),
        ("last", gap.last),
        *(("example", text) for text in gap.examples),
    ]
    if gap.nearest:
        lacks = f"; its text lacks: {', '.join(gap.nearest.lacks)}" if gap.nearest.lacks else ""
        rows.append(("nearest", f"{gap.nearest.id}, relevance {gap.nearest.relevance:.2f}{lacks}"))
    return rows


def mirror(
    context: typer.Context,
    id: Annotated[str, ui.argument("Of one capability; without it, all that is not found.", metavar="[ID]")] = "",
    days: _Days = 30,
    audience: Annotated[
        list[str] | None, ui.option("Show what an owner in this audience may see; repeatable. Default: all.")
    ] = None,
) -> None:
    """Show an owner what was asked of a capability, how it did, to what it lost requests and why.

    Searches logged requests again, without the reranker. Of one capability it also tries a sentence that would win
    lost requests, in a search of a copy: nothing is saved.
    """
    found = Mirror.over(local_system(context.obj, create=False), days).answer(
        MirrorQuery(id=id, days=days, audience=tuple(audience or ()), limit=1_000 if ui.is_json() else _SHOWN)
    )
    ui.show(found, _mirror_lines(found))
    for text in () if ui.is_json() else found["notes"]:
        ui.note(text)


def _mirror_lines(found: dict[str, Any]) -> ui.Lines:
    if "id" in found:
        yield ui.facts(_facts_of_one(found))
        return
    numbers = ("asked", "shown", "first", "succeeded", "lost")
    table = ui.table_of("capability", *numbers, "because")
    for one in found["capabilities"]:
        table.add_row(ui.plain(one["id"]), *(str(one[name]) for name in numbers), one["cause"] or "")
    yield table
    never = found["never_found"]["count"]
    requests = ui.count_of(found["requests"], "request")
    yield f"{never:,} never among the first {FIVE} of {requests}; --json lists them"


def _facts_of_one(one: dict[str, Any]) -> Iterator[tuple[str, object]]:
    yield "id", one["id"]
    yield "asked", f"{ui.count_of(one['asked'], 'time')}; {one['lost']:,} lost"
    yield (
        "shown",
        f"{ui.count_of(one['shown'], 'time')} among the first {FIVE}, {ui.count_of(one['first'], 'time')} first",
    )
    yield "reported", f"{one['chosen']:,} chosen, {one['succeeded']:,} succeeded"
    if one["cause"]:
        yield "because", f"{one['cause']}: {one['advice']}"
    for rival in one["lost_to"]:
        why = "".join(f"\n{reason}" for reason in rival["why"])
        yield "lost to", f"{rival['id'] or 'one that you may not see'}, {ui.count_of(rival['requests'], 'time')}{why}"
        yield from (("", f"  {text}") for text in rival["examples"])
    if rewrite := one["rewrite"]:
        yield "try", rewrite["sentence"]
        yield "", rewrite["effect"]


def replay(
    context: typer.Context,
    query_id: Annotated[str, ui.argument("The `query_id` of an answer of `mats serve`.")],
    log: Annotated[
        Path | None,
        ui.option("Read this log instead, such as one fetched from CloudWatch.", dir_okay=False, exists=True),
    ] = None,
) -> None:
    """Run a logged query again and compare the rankings."""
    local = local_system(context.obj, create=False)
    record = decision(query_id, [log] if log else sorted(local.settings.home.glob("mats.log*")))
    shortlist = local.discover(logged_query(record), record.get("audiences", ()), logged_scope(record))
    moved = moves(record, shortlist)
    now = {"verdict": shortlist.verdict, "degraded": shortlist.degraded, "models": _models(shortlist)}
    changes = {name: {"was": record[name], "now": value} for name, value in now.items()}
    value = {"query_id": query_id, "query": record["query"], **changes, "moves": moved}
    ui.show(value, _replay_lines(record, shortlist, moved))


def _models(shortlist: Shortlist) -> dict[str, str | None]:
    return {"rerank": shortlist.trace.reranker, "embed": shortlist.trace.encoder}


def _replay_lines(record: dict[str, Any], shortlist: Shortlist, moved: list[dict[str, Any]]) -> ui.Lines:
    yield ui.plain(record["query"], "bold cyan")
    yield Text(f"verdict {_change(record['verdict'], shortlist.verdict)}", style="dim")
    for role, model in _models(shortlist).items():
        if model != record["models"].get(role):
            yield Text(f"{role} {_change(record['models'].get(role), model)}", style="yellow")
    table = ui.table_of("was", "now", "score", "capability", "because", right=("was", "now", "score"))
    for move in moved:
        sides = (move["was"], move["now"])
        positions = [str(place["position"]) if place else "–" for place in sides]
        score = _change(*(f"{place['score']:.2f}" if place else "–" for place in sides))
        table.add_row(*positions, score, ui.plain(move["id"]), _because(*sides))
    yield table


def _change(was: object, now: object) -> str:
    return str(now) if was == now else f"{was} → {now}"


def _because(was: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> str:
    """The differences between then and now: the revision, the signals, the memory."""
    if was is None or now is None:
        return "new among the candidates" if was is None else "no longer among the candidates"
    texts = [{name: f"{value:.2f}" for name, value in place["signals"].items()} for place in (was, now)]
    told = [("revision", str(was["rev"]), str(now["rev"]))]
    told += [(name, *(text.get(name, "none") for text in texts)) for name in {**texts[0], **texts[1]}]
    told.append(("memory", f"{was['memory']:+.2f}", f"{now['memory']:+.2f}"))
    return ", ".join(f"{name} {_change(before, after)}" for name, before, after in told if before != after)


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


def moves(record: Mapping[str, Any], shortlist: Shortlist) -> list[dict[str, Any]]:
    """Every candidate with its place then and now, None where it has none; in the current order, the gone ones last."""
    nothing = {"position": 0, "score": 0.0, "rev": 0, "signals": {}, "memory": 0.0}
    was = {
        one["id"]: {name: one.get(name, default) for name, default in nothing.items()} for one in record["candidates"]
    }
    now = {
        result.id: {
            "position": position,
            "score": round(result.score, 4),
            "rev": result.candidate.profile.rev,
            "signals": {str(signal): round(value, 4) for signal, value in result.signals.items()},
            "memory": round(result.candidate.shift, 4),  # of `retrieval`, by remembered requests
        }
        for position, result in enumerate(shortlist.ranked, start=1)
    }
    return [{"id": id, "was": was.get(id), "now": now.get(id)} for id in {**now, **was}]
