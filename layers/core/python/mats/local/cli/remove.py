"""The commands that remove capabilities, and erase every trace of one."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from mats.bootstrap import AnySystem, open_system
from mats.bootstrap.local import LocalSystem, as_local, local_system
from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound, Fault, NotPossible
from mats.domain.profile.assignment import namespace_of_pattern, parse_target
from mats.domain.profile.profile import Cause, Status
from mats.local.cli.indexing import index, settle
from mats.local.cli.output import (
    AsJson,
    CapabilityId,
    Exit,
    bar,
    complain,
    note,
    out,
    parse_id,
    plain,
    print_json,
    print_result,
)
from mats.ports import GUARD_DAYS, Change
from mats.usecases.erase import Erase

if TYPE_CHECKING:
    from mats.bootstrap.cloud import CloudStores


_WAIT_S, _POLL_S = 600, 2.0
_LEFT_HERE = (
    f"the id alone, as a tombstone, for {GUARD_DAYS} days; the id in receipts of answers, for 30 days; names of "
    "providers among the latest 1,000 answers; "
    "freed pages of mats.db until they are used again, and your copies of the file"
)
_LEFT_IN_AWS = (
    f"the id alone, as a tombstone, for {GUARD_DAYS} days; the id in the bus's archive and in receipts for 30 days; "
    "backups of the tables for 35 days and snapshots of the domain for 14; logs for as long as they are kept"
)
"""Data that cannot be erased: docs/runbook.md."""
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
        if len(found) == 1 and not unknown:
            print_result({"id": found[0], "removed": True}, f"{found[0]}: removed", as_json=as_json)
        else:
            outcome = {"removed": found, "unknown": unknown}
            print_result(outcome, f"{len(found):,} capabilities removed", as_json=as_json)
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


def _show(ids: Sequence[Id], *, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": True, "would_remove": list(ids)})
        return
    for id in ids[:_MOST_SHOWN]:
        out.print(plain(id), soft_wrap=True)
    if len(ids) > _MOST_SHOWN:
        out.print(f"… and {len(ids) - _MOST_SHOWN:,} more; --json has all of them", style="dim")
    out.print(f"{len(ids):,} would be removed; nothing was removed")


def erase(
    context: typer.Context,
    id: CapabilityId,
    yes: Annotated[bool, typer.Option("--yes", help="Erase it; without it, only show what there is.")] = False,
    as_json: AsJson = False,
) -> None:
    """Erase every trace of a capability, here or in AWS: registration, trust, profile, versions, entries, outcomes.

    Erased data does not come back with a late event. The owner may register it again.
    """
    system = open_system(context.obj, create=False)
    erasing, key = erase_of(system), Id(id)
    traces = erasing.traces(key)
    if traces.is_gone:
        raise CapabilityNotFound(id)
    if yes:
        erasing(key)
    text = (
        f"{id}: {'erased' if yes else 'would be erased'}: {'a' if traces.registration else 'no'} registration, "
        f"{'its' if traces.trust else 'no'} trust, "
        f"{f'a profile ({traces.profile})' if traces.profile else 'no profile'}, {traces.versions:,} earlier versions, "
        f"{'its' if traces.outcomes else 'no'} outcomes"
    )
    print_result({"id": id, "erased": yes, **traces._asdict()}, text, as_json=as_json)
    note(f"What stays: {_LEFT_HERE if as_local(system) else _LEFT_IN_AWS}.")
    if not yes:
        note("Nothing was erased: repeat the command with --yes.")


def erase_of(system: AnySystem, *, sleep: Callable[[float], None] = time.sleep) -> Erase:
    """The use case over a system. In AWS the event path writes the tombstones, so the domain need not be reachable."""
    stores, local = system.stores, as_local(system)

    def settle(id: Id) -> None:
        if local:
            cause = Cause(event_id=f"erase-{local.clock.now()}", time=local.clock.now())
            local.enrich([Change(id, cause)])
            local.stores.queue.forget(id)
            local.stores.delete_saved_arrays()
        else:
            _settle_in_aws(cast("CloudStores", stores), id, sleep)

    return system.erase(settle)


def _settle_in_aws(stores: "CloudStores", id: Id, sleep: Callable[[float], None]) -> None:
    stores.send_changes([id])
    for _ in range(int(_WAIT_S / _POLL_S)):
        kept = stores.profiles.get([id]).get(id)
        if kept is None or (kept.profile.status is Status.DELETED and kept.profile.indexed_rev == kept.profile.rev):
            return
        sleep(_POLL_S)
