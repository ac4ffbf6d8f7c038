"""The streams function: records of the tables' streams to events on the bus."""

from collections.abc import Mapping
from typing import Any

from mats.bootstrap.cloud import open_streams
from mats.settings import open_once

_forward = open_once(open_streams, index=False)


def handle(event: Mapping[str, Any], context: object) -> None:
    _forward()(event["Records"])
