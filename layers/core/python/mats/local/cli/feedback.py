"""The commands on what callers report: feedback, its confirmation, the report of use."""

from contextlib import closing
from typing import Annotated, Any

import typer

from mats.bootstrap import open_system
from mats.bootstrap.local import local_system
from mats.domain.errors import Fault, NotPossible, RequestInvalid
from mats.domain.learning.outcome import Event
from mats.edge.feedback import FeedbackRequest, require
from mats.edge.http import local_caller
from mats.local.cli import output as ui
from mats.local.cli.import_ import service_at
from mats.local.use import UseQuery, report_use
from mats.ports import Outcomes
from mats.settings import SettingsInvalid

_SHOWN = 20
_HIDDEN = "(not visible)"


def feedback(
    context: typer.Context,
    query_id: Annotated[str, ui.argument("`query_id` of the answer.")],
    selected: Annotated[list[str] | None, ui.option("Id of a result that was chosen; repeatable.")] = None,
    succeeded: Annotated[list[str] | None, ui.option("Id of a result that did what was asked for; repeatable.")] = None,
    failed: Annotated[list[str] | None, ui.option("Id of a result that was called and failed; repeatable.")] = None,
    wrong: Annotated[list[str] | None, ui.option("Id of a result that does something else; repeatable.")] = None,
    missing: Annotated[str | None, ui.option("What was needed and not found.")] = None,
    url: Annotated[str, ui.option("Report to the service at this address, with the token in MATS_TOKEN.")] = "",
) -> None:
    """Report what happened to the results of an answer, so that later answers are better."""
    given = {Event.SELECTED: selected, Event.SUCCEEDED: succeeded, Event.FAILED: failed, Event.WRONG: wrong}
    outcomes = dict[str, list[Event]]()
    for id, event in ((id, event) for event, ids in given.items() for id in ids or ()):
        outcomes.setdefault(id, []).append(event)
    if not (outcomes or (missing or "").strip()):
        options = ", ".join(f"--{event} ID" for event in given)
        raise RequestInvalid([Fault("", f"nothing is reported: give {options} or --missing WHAT")])
    listed = [{"id": id, "event": event} for id, events in outcomes.items() for event in events]
    names = {f"outcomes.{number}": f"--{one['event']}" for number, one in enumerate(listed)}
    names |= {"query_id": "QUERY_ID", "missing": "--missing"}
    try:
        if url:
            with service_at(url, context.obj.token) as client:
                answer = client.feedback(query_id, outcomes, missing=missing)
        else:
            wish = FeedbackRequest.parse({"query_id": query_id, "outcomes": listed, "missing": missing})
            with closing(local_system(context.obj, create=False)) as local:
                answer = require(local.feedback)(local_caller(local.settings), wish)
    except RequestInvalid as error:
        faults = ((".".join(one.attribute.split(".")[:2]), one.message) for one in error.faults)
        raise RequestInvalid([Fault(names.get(place, place), message) for place, message in faults]) from error
    text = f"{ui.count_of(answer.recorded, 'new outcome')} recorded"
    if missing:
        text = f"recorded what was missing; {text}" if outcomes else "recorded what was missing"
    ui.show(answer.model_dump(), text)


def confirm(
    context: typer.Context,
    query_id: Annotated[str, ui.argument("`query_id` of an answer with feedback.")],
    withdraw: Annotated[bool, ui.option("Take an earlier confirmation back.", "--withdraw")] = False,
) -> None:
    """Confirm what a caller reported on an answer, here or in AWS, so that it counts for every caller."""
    if not _open_outcomes(context).confirm(query_id, confirmed=not withdraw):
        raise NotPossible([Fault("", f"nothing is reported on {query_id[:80]!r}: see `mats feedback -h`")])
    text = f"{query_id}: {'no longer confirmed' if withdraw else 'confirmed; its outcomes count for every caller'}"
    ui.show({"query_id": query_id, "confirmed": not withdraw}, text)


def withdraw(
    context: typer.Context,
    caller: Annotated[
        str, ui.argument("token:NAME, or `local` for this machine; in AWS the role's ARN, or the subject of the token.")
    ],
) -> None:
    """Withdraw what a caller reported, here or in AWS; what an operator confirmed stays.

    End the caller's access first, such as with `mats token revoke`, or it can report again.

    After an interruption, the same command goes on.
    """
    if not caller:
        raise typer.BadParameter("is empty: name a caller", param_hint="CALLER")
    withdrawn = _open_outcomes(context).withdraw_of(caller)
    text = f"{caller}: {ui.count_of(withdrawn, 'report')} withdrawn"
    ui.show({"caller": caller, "reports_withdrawn": withdrawn}, text)
    if not withdrawn:
        ui.note(
            "It reported nothing, or an operator confirmed it. A token is token:NAME: `mats token list` has the names."
        )


def _open_outcomes(context: typer.Context) -> Outcomes:
    outcomes = open_system(context.obj, create=False).stores.outcomes
    if outcomes is None:
        raise SettingsInvalid("missing: set MATS_OUTCOMES_TABLE")
    return outcomes


def use(
    context: typer.Context,
    days: Annotated[int, ui.option("Only the last N days; receipts are kept for 30.", min=1, max=3650)] = 30,
    audience: Annotated[
        list[str] | None, ui.option("Show what an owner in this audience may see; repeatable. Default: all.")
    ] = None,
) -> None:
    """Show how each capability was used, which others it lost requests to, and which requests nothing served.

    Counts answers that had it (asked), among the first five (shown) or first; and what callers reported.
    """
    local = local_system(context.obj, create=False)
    query = UseQuery(days=days, audience=tuple(audience or ()), limit=1_000 if ui.is_json() else _SHOWN)
    found = report_use(local, query)
    ui.show(found, _use_lines(found))


def _use_lines(found: dict[str, Any]) -> ui.Lines:
    yield f"{ui.count_of(found['answers'], 'answer')} in {ui.count_of(found['days'], 'day')}"
    numbers = ("asked", "shown", "first", "chosen", "succeeded")
    used = ui.table_of("capability", *numbers, "lost to", right=numbers)
    for one in found["capabilities"]:
        lost = "\n".join(f"{rival['id'] or _HIDDEN} {rival['answers']:,}" for rival in one["lost_to"])
        used.add_row(ui.plain(one["id"]), *(f"{one[name]:,}" for name in numbers), ui.plain(lost))
    unserved = ui.table_of("nothing served", "requests", "last", "nearest", right=("requests",))
    for one in found["unserved"]:
        text = one["text"] or "(the text is not stored)"
        unserved.add_row(ui.plain(text), f"{one['requests']:,}", one["last"][:10], ui.plain(one["nearest"] or "–"))
    for table, more in ((used, found["more"]), (unserved, found["more_unserved"])):
        if table.row_count:
            yield table
        if more:
            yield f"and {more:,} more; --json has up to 1,000"
