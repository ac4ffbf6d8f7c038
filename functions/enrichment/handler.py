"""The enrichment function: SQS batches of EventBridge events to the change processor."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from mats import bootstrap
from mats.edge.changes import ChangeProcessor, process_batch
from mats.settings import function_settings, on_lambda


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """What AWS calls."""
    return process_batch(event, _processor())


@cache
def _processor() -> ChangeProcessor:
    """Built once per execution environment."""
    return bootstrap.change_processor(function_settings(os.environ))


if on_lambda(os.environ):
    _processor()  # during Lambda's init phase
