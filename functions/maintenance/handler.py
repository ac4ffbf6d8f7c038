"""The maintenance function: one piece of a task for each event of the state machine."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from mats.bootstrap.cloud import open_maintenance
from mats.edge.maintenance import Maintenance
from mats.settings import function_settings, on_lambda


def handle(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    return _maintenance()(event, context.get_remaining_time_in_millis)


@cache
def _maintenance() -> Maintenance:
    return open_maintenance(function_settings(os.environ))


if on_lambda(os.environ):
    _maintenance()  # during Lambda's init phase
