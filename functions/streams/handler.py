"""The streams function: records of the tables' streams to events on the bus."""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from mats.bootstrap.cloud import open_streams
from mats.settings import Settings, on_lambda


def handle(event: Mapping[str, Any], context: object) -> None:
    _forward()(event["Records"])


@cache
def _forward() -> Callable[[Iterable[Mapping[str, Any]]], None]:
    return open_streams(Settings.from_env(os.environ))


if on_lambda(os.environ):
    _forward()  # during Lambda's init phase
