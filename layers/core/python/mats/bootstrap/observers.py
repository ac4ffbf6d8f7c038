"""The observers of a service."""

from collections.abc import Sequence

from mats.edge.observers import LogObserver, MeasureObserver, Observers
from mats.ports import Observer
from mats.settings import Settings


def service_observer(settings: Settings, service: str, further: Sequence[Observer] = ()) -> Observer:
    """The log of a service, its metrics if the settings name a namespace, and any others."""
    log = LogObserver(settings.log_queries == "text", requests=settings.log_format == "json")
    if not settings.metrics:
        return Observers([log], further)
    from mats.adapters.cloudwatch import CloudWatchMetrics  # noqa: PLC0415 - Powertools, for the functions in AWS

    return Observers([log, MeasureObserver(CloudWatchMetrics(settings.metrics, service))], further)
