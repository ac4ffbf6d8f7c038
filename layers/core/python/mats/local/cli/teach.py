"""`mats teach`: what operators know of a registry, here or in AWS."""

from contextlib import closing
from typing import Annotated

import typer

from mats.bootstrap import open_system
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, NotPossible
from mats.domain.text.fence import escape_hidden
from mats.local.cli.output import AsJson, print_json, print_result


def teach(
    context: typer.Context,
    request: Annotated[str, typer.Argument(metavar="[REQUEST]", help="What callers ask, in their words.")] = "",
    id: Annotated[str, typer.Argument(metavar="[ID]", help="The capability that serves it.")] = "",
    list_: Annotated[bool, typer.Option("--list", help="Show what is taught.")] = False,
    import_: Annotated[
        typer.FileText | None, typer.Option("--import", metavar="FILE", help="Teach what --list wrote.")
    ] = None,
    forget: Annotated[bool, typer.Option("--forget", help="Withdraw what is taught for REQUEST.")] = False,
    as_json: AsJson = False,
) -> None:
    """Teach which capability serves a request: it comes first there, and higher for requests that are nearly the same.

    It need not have been among the results. Another ID replaces it. What is taught outlives every sync.
    """
    alone = list_ or import_ is not None
    if (bool(request), bool(id)) != (not alone, not (alone or forget)):
        raise typer.BadParameter("give REQUEST and ID, or --forget REQUEST, or --list, or --import FILE")
    with closing(open_system(context.obj, create=False)) as system:
        if list_:
            lessons = system.teach.lessons()
            if as_json:
                print_json([{"request": text, "id": id} for text, id in lessons])
            for text, taught in () if as_json else lessons:
                typer.echo(escape_hidden(f"{taught}  {' '.join(text.split())}"))  # not wrapped, to be read again
        elif import_:
            rows = [line.strip().partition("  ") for line in import_ if line.strip()]
            for named, _, text in rows:
                system.teach(text, Id(named))
            print_result({"taught": len(rows)}, f"{len(rows):,} requests taught", as_json=as_json)
        elif forget:
            if not system.teach.forget(request):
                raise NotPossible(
                    [Fault("REQUEST", f"nothing is taught for {request[:80]!r}: see `mats teach --list`")]
                )
            print_result({"request": request, "id": None}, f"{request!r}: no longer taught", as_json=as_json)
        else:
            system.teach(request, Id(id))
            print_result({"request": request, "id": id}, f"{request!r}: {id} comes first", as_json=as_json)
