"""Wiring: what runs in production reaches the adapters through this package."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mats.settings import Settings

if TYPE_CHECKING:
    from mats.bootstrap.system import AnySystem
    from mats.edge.changes import ChangeProcessor
    from mats.ports import Observer


def open_system(settings: Settings, *, create: bool = True, observers: "Sequence[Observer]" = ()) -> "AnySystem":
    """The system in AWS if the settings name the endpoint of its index, else the local one, as `local_system` opens it.

    Raises RegistryNotFound: there is no local registry, and `create` is false; StorageUnusable: the local registry
    cannot be opened; the message says what to do; NotPermitted: AWS's own settings cannot be used.
    """
    if settings.in_aws:
        from mats.bootstrap.cloud import cloud_system  # noqa: PLC0415 - boto3 and opensearch-py

        return cloud_system(settings, observers=observers)
    from mats.bootstrap.local import local_system  # noqa: PLC0415 - sqlite3, which the functions in AWS do not need

    return local_system(settings, create=create)


def change_processor(settings: Settings, *, observers: "Sequence[Observer]" = ()) -> "ChangeProcessor":
    return open_system(settings, observers=observers).change_processor
