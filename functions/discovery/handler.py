"""The discovery function: API Gateway proxy events to the application."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from mats.bootstrap import open_system
from mats.edge.api_gateway import parse_request, proxy_response
from mats.edge.routes import respond
from mats.edge.telemetry.log import API, observe
from mats.edge.telemetry.observers import with_observers
from mats.settings import on_lambda, open_once

_system = open_once(with_observers("discovery", open_system))


@observe("discovery", correlation=API)
def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    return proxy_response(respond(_system().application, parse_request(event)))


def _after_restore(work: Callable[[], None]) -> None:
    """Let Lambda do this after each restore of a snapshot; its runtime brings the package."""
    with suppress(ModuleNotFoundError):
        import_module("snapshot_restore_py").register_after_restore(work)


if on_lambda(os.environ):
    _ = _system().application  # during Lambda's init phase, and once for all with SnapStart
    _system().load_index()
    _after_restore(_system().open_connections)
