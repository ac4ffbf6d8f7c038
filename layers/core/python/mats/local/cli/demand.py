"""`mats demand`."""

from typing import Annotated

import typer

from mats.bootstrap.local import find_demand, local_system
from mats.domain.learning.demand import Gap
from mats.local.cli.output import AsJson, facts, note, out, plain, print_json
from mats.local.demand_json import demand_json

_SHOWN = 20


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
