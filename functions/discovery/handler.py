"""The discovery function: API Gateway proxy events to the application."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from mats import bootstrap
from mats.edge.api_gateway import parse_request, proxy_response
from mats.edge.app import Application
from mats.edge.dispatch import respond
from mats.settings import function_settings, on_lambda


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """What AWS calls."""
    return proxy_response(respond(_application(), parse_request(event)))


@cache
def _application() -> Application:
    """Built once per execution environment."""
    return bootstrap.application(function_settings(os.environ))


if on_lambda(os.environ):
    _application()  # during Lambda's init phase, and once for all with SnapStart
