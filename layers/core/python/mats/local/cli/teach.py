"""`mats teach` and `mats synonym`: what operators know of a registry, here or in AWS."""

from contextlib import closing
from typing import Annotated

import typer

from mats.bootstrap import open_system
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, NotPossible
from mats.domain.text.fence import escape_hidden
from mats.domain.text.synonyms import parse_groups
from mats.local.cli.output import AsJson, print_json, print_result
from mats.local.console.actions import changed_groups
from mats.settings import SettingsInvalid


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


def synonym(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORD]...", help="Words or phrases that mean the same.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show all as lines, which --import reads.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take each WORD out of its group.")] = False,
    import_: Annotated[
        typer.FileText | None, typer.Option("--import", metavar="FILE", help="Replace all by the lines of a file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which words mean the same in this registry: a request with one of them is searched with the others, too.

    Give them to those that they mean the same as: groups with a word in common become one. A line of a file is a group,
    its words separated by commas.
    """
    if bool(words) == (list_ or import_ is not None):
        raise typer.BadParameter("give WORDs, with or without --remove, or --list, or --import FILE")
    with closing(open_system(context.obj, create=False)) as system:
        if (book := system.stores.synonyms) is None:
            raise SettingsInvalid("missing: set MATS_SWITCHES_TABLE")
        before = book.load()
        after = parse_groups(import_) if import_ else changed_groups(before, words or (), remove=remove)
        if after != before:
            book.save(after)
    if as_json:
        print_json(after)
    elif list_:
        typer.echo("".join(f"{escape_hidden(', '.join(group))}\n" for group in after), nl=False)
    else:
        print_result(after, f"{len(after):,} groups of synonyms", as_json=False)
