"""The enrichment function: SQS batches of EventBridge events to the change processor."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from mats import bootstrap
from mats.edge.changes import ChangeProcessor, process_batch
from mats.settings import function_settings, on_lambda
from mats.usecases.deadline import Deadline


def handle(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    return process_batch(event, _processor(), Deadline.of(context.get_remaining_time_in_millis))


@cache
def _processor() -> ChangeProcessor:
    return bootstrap.change_processor(function_settings(os.environ))


if on_lambda(os.environ):
    _processor()  # during Lambda's init phase
