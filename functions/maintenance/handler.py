"""The maintenance function: one piece of a task for each event of the state machine."""

from collections.abc import Mapping
from typing import Any

from mats.bootstrap.cloud import open_maintenance
from mats.edge.telemetry.log import EXECUTION, observe
from mats.settings import open_once

_maintenance = open_once(open_maintenance)


@observe("maintenance", correlation=EXECUTION)
def handle(event: Mapping[str, Any], context: Any) -> dict[str, Any]:
    return _maintenance()(event, context.get_remaining_time_in_millis)
