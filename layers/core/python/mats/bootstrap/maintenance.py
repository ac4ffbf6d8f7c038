"""The maintenance function: it compares and fills the index itself, and sends other work down the event path."""

from dataclasses import replace

from mats.bootstrap.cloud import CloudSystem, cloud_system
from mats.edge.maintenance import Maintenance
from mats.settings import Settings
from mats.usecases.resend import Resend


def open_maintenance(settings: Settings) -> Maintenance:
    """Maintenance of the system in AWS; makes no call.

    Raises:
        NotPermitted: AWS's own settings cannot be used.
    """
    return maintenance_of(cloud_system(settings))


def maintenance_of(system: CloudSystem) -> Maintenance:
    """Maintenance of this system."""
    stores, memory = system.stores, system.stores.memory
    resend = Resend(
        registry=stores.registry,
        trust=stores.trust,
        profiles=stores.profiles,
        maker=system.profile_maker,
        send=stores.send_changes,
    )
    return Maintenance(
        reconcile=replace(system.reconcile, enrich=resend),
        reindex=system.reindex,
        backfill=replace(system.backfill(per_minute=0), enrich=replace(resend, renew=True)),
        registry=stores.registry,
        generations=stores.generations,
        follow_memory=memory.follow if memory else lambda: None,
    )
