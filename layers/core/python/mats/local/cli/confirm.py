"""`mats confirm`."""

from typing import Annotated

import typer

from mats.bootstrap import open_system
from mats.domain.errors import Fault, NotPossible
from mats.local.cli.output import AsJson, print_result
from mats.settings import SettingsInvalid


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
