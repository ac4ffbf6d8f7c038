"""`mats list`."""

from typing import Annotated

import typer

from mats.bootstrap.local import local_system
from mats.domain.capability.capability import Kind
from mats.edge.answers import CapabilityPage, ListedCapability
from mats.edge.endpoints import page_of
from mats.edge.http import local_caller
from mats.edge.requests import MAX_PAGE, ListParameters
from mats.local.cli.output import AsJson, note, out, plain, print_json, table_of


def list_(
    context: typer.Context,
    namespace: Annotated[
        list[str] | None, typer.Option(help="Only this namespace and those below it; may be given several times.")
    ] = None,
    kind: Annotated[list[Kind] | None, typer.Option(help="Only this kind; may be given several times.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Only capabilities with this tag; given several times: with all of them.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of capabilities.", min=1)] = 50,
    after: Annotated[str, typer.Option(metavar="ID", help="Continue after this id.", show_default=False)] = "",
    as_json: AsJson = False,
) -> None:
    """List capabilities in order of id, a page at a time."""
    parameters = {"namespace": namespace or [], "kind": [str(one) for one in kind or []], "tag": tag or []}
    wish = ListParameters.of({**parameters, **({"after": [after]} if after else {})})
    local = local_system(context.obj, create=False)
    found: list[ListedCapability] = []
    following: str | None = after
    while following is not None and len(found) < limit:
        step = wish.model_copy(update={"limit": min(limit - len(found), MAX_PAGE), "after": following})
        more = page_of(local.application, local_caller(local.settings), step)
        found, following = [*found, *more.capabilities], more.following
    page = CapabilityPage(capabilities=found, following=following)
    if as_json:
        print_json(page.model_dump(mode="json"))
    else:
        _show(page)


def _show(page: CapabilityPage) -> None:
    if not page.capabilities:
        note("No capability; see `mats stats`.")
        return
    table = table_of("id", "kind", "trust", "summary", right=("trust",))
    for one in page.capabilities:
        kind = f"{one.kind}{'' if one.lifecycle == 'active' else ', deprecated'}"
        trust = "" if one.trust is None else str(one.trust)
        table.add_row(plain(one.id, "bold cyan"), kind, trust, plain(one.summary))
    out.print(table)
    if page.following:
        note(f"More follow: --after {page.following!r}")
