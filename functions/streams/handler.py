"""The streams function: records of the tables' streams to events on the bus."""

from collections.abc import Mapping
from typing import Any

from mats.bootstrap.streams import open_streams
from mats.edge.telemetry.log import observe
from mats.settings import open_once

_forward = open_once(open_streams, index=False)


@observe("streams")
def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Lambda's partial batch response: the first record to deliver again, with all after it."""
    again = _forward()(event["Records"])
    return {"batchItemFailures": [{"itemIdentifier": again}] if again else []}
