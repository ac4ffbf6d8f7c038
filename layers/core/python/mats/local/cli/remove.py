"""`mats remove`."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound, Fault, NotPossible
from mats.domain.profile.assignment import namespace_of_pattern, parse_target
from mats.local.cli.indexing import index, settle
from mats.local.cli.output import AsJson, Exit, bar, complain, out, parse_id, plain, print_json, print_result

_MOST_SHOWN = 50


def remove(
    context: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="namespace/name", parser=parse_id)] = None,
    namespace: Annotated[
        str, typer.Option(help="Remove everything in this namespace and below it.", show_default=False)
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a namespace is removed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove capabilities from the registry and the index. Their versions and their trust remain."""
    if bool(ids) == bool(namespace):
        raise typer.BadParameter("give one ID or several, or --namespace")
    wanted = _namespace(namespace) if namespace else ""
    local = local_system(context.obj, create=False)
    if wanted:
        found, unknown = list(local.stores.registry.ids(namespace=wanted)), []
        if not found:
            raise NotPossible([Fault("--namespace", f"there is no capability in {wanted}")])
    else:
        given = [Id(id) for id in dict.fromkeys(ids or ())]
        known = local.stores.registry.get(given)
        found, unknown = [id for id in given if id in known], [id for id in given if id not in known]
    if dry_run:
        _show(found, as_json=as_json)
    elif found:
        if wanted and not yes:
            _ask(wanted, len(found))
        _remove(local, found)
        _report(found, unknown, as_json=as_json)
    for id in unknown[:-1]:
        complain(str(CapabilityNotFound(id)))
    if unknown:
        raise CapabilityNotFound(unknown[-1])


def _namespace(text: str) -> str:
    try:
        return namespace_of_pattern(parse_target(text.removesuffix(".*") + ".*")) or ""
    except ValueError as error:
        raise typer.BadParameter(f"--namespace: {error}") from error


def _ask(namespace: str, count: int) -> None:
    question = f"Remove {count:,} capabilities in {namespace} and below?"
    if not sys.stdin.isatty():
        raise NotPossible([Fault("", f"{question} Nothing was removed: repeat the command with --yes")])
    if not typer.confirm(question, err=True):
        raise typer.Exit(Exit.REFUSED)


def _remove(local: LocalSystem, ids: Sequence[Id]) -> None:
    with bar("Removing", len(ids)) as advance:
        for id in ids:
            local.stores.registry.remove(id)
            advance(1)
    if len(ids) > 1:
        index(local)
    settle(local, *ids)


def _report(removed: Sequence[Id], unknown: Sequence[Id], *, as_json: bool) -> None:
    if len(removed) == 1 and not unknown:
        print_result({"id": removed[0], "removed": True}, f"{removed[0]}: removed", as_json=as_json)
    else:
        outcome = {"removed": list(removed), "unknown": list(unknown)}
        print_result(outcome, f"{len(removed):,} capabilities removed", as_json=as_json)


def _show(ids: Sequence[Id], *, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": True, "would_remove": list(ids)})
        return
    for id in ids[:_MOST_SHOWN]:
        out.print(plain(id), soft_wrap=True)
    if len(ids) > _MOST_SHOWN:
        out.print(f"… and {len(ids) - _MOST_SHOWN:,} more; --json has all of them", style="dim")
    out.print(f"{len(ids):,} would be removed; nothing was removed")
