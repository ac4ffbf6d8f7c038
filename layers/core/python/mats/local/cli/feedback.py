"""The commands on what callers ask and report: feedback, its confirmation, unmet demand, what owners lose."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Annotated, Any

import typer

from mats.bootstrap import open_system
from mats.bootstrap.local import find_demand, local_system
from mats.domain.errors import Fault, NotPossible
from mats.domain.learning.demand import Gap
from mats.domain.learning.outcome import Event
from mats.edge.feedback import FeedbackRequest, require
from mats.edge.http import local_caller
from mats.local.cli.output import AsJson, facts, note, out, plain, print_json, print_result, table_of
from mats.local.console.demand import demand_json
from mats.local.preview.mirror import FIVE, Mirror, MirrorQuery
from mats.settings import SettingsInvalid

_SHOWN = 20


def feedback(
    context: typer.Context,
    query_id: Annotated[str, typer.Argument(help="`query_id` of the answer.")],
    selected: Annotated[list[str] | None, typer.Option(help="Id of a result that was chosen; repeatable.")] = None,
    succeeded: Annotated[
        list[str] | None, typer.Option(help="Id of a result that did what was asked for; repeatable.")
    ] = None,
    failed: Annotated[
        list[str] | None, typer.Option(help="Id of a result that was called and failed; repeatable.")
    ] = None,
    wrong: Annotated[
        list[str] | None, typer.Option(help="Id of a result that does something else; repeatable.")
    ] = None,
    missing: Annotated[str | None, typer.Option(help="What was needed and not found.")] = None,
    as_json: AsJson = False,
) -> None:
    """Report what happened to the results of an answer, so that later answers are better."""
    reported: Sequence[tuple[Event, list[str] | None]] = (
        (Event.SELECTED, selected),
        (Event.SUCCEEDED, succeeded),
        (Event.FAILED, failed),
        (Event.WRONG, wrong),
    )
    outcomes = [{"id": id, "event": event} for event, ids in reported for id in ids or ()]
    wish = FeedbackRequest.parse({"query_id": query_id, "outcomes": outcomes, "missing": missing})
    local = local_system(context.obj, create=False)
    with closing(local):
        answer = require(local.feedback)(local_caller(local.settings), wish)
    text = f"{answer.recorded:,} new outcomes recorded"
    if missing:
        text = f"recorded what was missing; {text}" if outcomes else "recorded what was missing"
    print_result(answer.model_dump(), text, as_json=as_json)


def confirm(
    context: typer.Context,
    query_id: Annotated[str, typer.Argument(help="`query_id` of an answer with feedback; `mats replay` shows it.")],
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take an earlier confirmation back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Confirm what a caller reported on an answer, here or in AWS, so that it counts for every caller."""
    outcomes = open_system(context.obj, create=False).stores.outcomes
    if outcomes is None:
        raise SettingsInvalid("missing: set MATS_OUTCOMES_TABLE and MATS_TALLIES_TABLE")
    if not outcomes.confirm(query_id, confirmed=not withdraw):
        raise NotPossible([Fault("QUERY_ID", f"nothing is reported on {query_id[:80]!r}: see `mats feedback -h`")])
    text = f"{query_id}: {'no longer confirmed' if withdraw else 'confirmed; its outcomes count for every caller'}"
    print_result({"query_id": query_id, "confirmed": not withdraw}, text, as_json=as_json)


def demand(
    context: typer.Context,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Only the last N days; receipts are kept for 30.")] = 30,
    as_json: AsJson = False,
) -> None:
    """Show what callers asked for and did not find, grouped by meaning.

    Counts requests with the verdict none or weak, and those whose callers reported that nothing served them. What they
    reported as served counts against a group.
    """
    local = local_system(context.obj, create=False)
    found = find_demand(local, days)
    if as_json:
        print_json(demand_json(found))
        return
    for gap in found.gaps[:_SHOWN]:
        out.print(plain(gap.name or "(the texts of these requests are not stored)", style="bold"))
        out.print(facts(_facts_of(gap)))
    if len(found.gaps) > _SHOWN:
        note(f"and {len(found.gaps) - _SHOWN:,} more; --json has all")
    unmet = f"{found.unmet:,} of {found.requests:,} requests in {days} days were not served"
    groups = f"{len(found.gaps):,} group{'' if len(found.gaps) == 1 else 's'}"
    note(f"{unmet}; {groups}" if found.requests else f"no receipts of the last {days} days")


def _facts_of(gap: Gap) -> list[tuple[str, object]]:
    verdicts = "".join(f"{count} {verdict}, " for verdict, count in gap.verdicts.items())
    asked = f"{gap.requests:,} times by {gap.callers:,} caller{'' if gap.callers == 1 else 's'}"
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
    id: Annotated[
        str, typer.Argument(metavar="[ID]", help="Of one capability; without it, all that is not found.")
    ] = "",
    days: Annotated[int, typer.Option(min=1, max=3650, help="Only the last N days; receipts are kept for 30.")] = 30,
    audience: Annotated[
        list[str] | None, typer.Option(help="Show what an owner in this audience may see; repeatable. Default: all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show an owner what was asked of a capability, how it did, to what it lost requests and why.

    Searches logged requests again, without the reranker. Of one capability it also tries a sentence that would win
    lost requests, in a search of a copy: nothing is saved.
    """
    found = Mirror.over(local_system(context.obj, create=False), days).answer(
        MirrorQuery(id=id, days=days, audience=tuple(audience or ()), limit=1_000 if as_json else _SHOWN)
    )
    if as_json:
        print_json(found)
        return
    if id:
        out.print(facts(_facts_of_one(found)))
    else:
        table = table_of("capability", "asked", "shown", "first", "succeeded", "lost", "because")
        for one in found["capabilities"]:
            numbers = (str(one[name]) for name in ("asked", "shown", "first", "succeeded", "lost"))
            table.add_row(plain(one["id"]), *numbers, one["cause"] or "")
        out.print(table)
        never = found["never_found"]
        note(f"{never['count']:,} never among the first {FIVE} of {found['requests']:,} requests; --json lists them")
    for text in found["notes"]:
        note(text)


def _facts_of_one(one: dict[str, Any]) -> Iterator[tuple[str, object]]:
    yield "id", one["id"]
    yield "asked", f"{one['asked']:,} times; {one['lost']:,} lost"
    yield "shown", f"{one['shown']:,} times among the first {FIVE}, {one['first']:,} times first"
    yield "reported", f"{one['chosen']:,} chosen, {one['succeeded']:,} succeeded"
    if one["cause"]:
        yield "because", f"{one['cause']}: {one['advice']}"
    for rival in one["lost_to"]:
        why = "".join(f"\n{reason}" for reason in rival["why"])
        yield "lost to", f"{rival['id'] or 'one that you may not see'}, {rival['requests']:,} times{why}"
        yield from (("", f"  {text}") for text in rival["examples"])
    if rewrite := one["rewrite"]:
        yield "try", rewrite["sentence"]
        yield "", rewrite["effect"]
