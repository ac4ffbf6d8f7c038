"""`mats feedback`."""

from collections.abc import Sequence
from contextlib import closing
from typing import Annotated

import typer

from mats.bootstrap.local import local_system
from mats.domain.learning.outcome import Event
from mats.edge.caller import local_caller
from mats.edge.feedback import FeedbackRequest, require
from mats.local.cli.output import AsJson, print_result


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
