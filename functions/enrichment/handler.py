"""The enrichment function: SQS batches of EventBridge events to the change processor."""

from collections.abc import Mapping
from typing import Any

from mats.bootstrap import change_processor
from mats.edge.changes import process_batch
from mats.edge.telemetry.log import observe
from mats.edge.telemetry.observers import with_observers
from mats.settings import open_once
from mats.usecases.deadline import Deadline

_processor = open_once(with_observers("enrichment", change_processor))


@observe("enrichment")
def handle(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    return process_batch(event, _processor(), Deadline.of(context.get_remaining_time_in_millis))
