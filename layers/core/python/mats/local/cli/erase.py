"""`mats erase`."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, cast

import typer

from mats.bootstrap import AnySystem, open_system
from mats.bootstrap.local import LocalSystem, as_local
from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityNotFound
from mats.domain.profile.profile import Cause, Status
from mats.local.cli.output import AsJson, CapabilityId, note, print_result
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
            _settle_here(local, id)
        else:
            _settle_in_aws(cast("CloudStores", stores), id, sleep)

    return system.erase(settle)


def _settle_here(local: LocalSystem, id: Id) -> None:
    cause = Cause(event_id=f"erase-{local.clock.now()}", time=local.clock.now())
    local.enrich([Change(id, cause)])
    local.stores.queue.forget(id)
    local.stores.delete_saved_arrays()


def _settle_in_aws(stores: "CloudStores", id: Id, sleep: Callable[[float], None]) -> None:
    stores.send_changes([id])
    for _ in range(int(_WAIT_S / _POLL_S)):
        kept = stores.profiles.get([id]).get(id)
        if kept is None or (kept.profile.status is Status.DELETED and kept.profile.indexed_rev == kept.profile.rev):
            return
        sleep(_POLL_S)
